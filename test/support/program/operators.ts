/** Operators of an appliance under test, signed in with a browser: it keeps the session cookie and sends what browsers send. */
import type { Role } from '../../../src/http/roles.js'
import type { Answer, Client } from '../api/client.js'
import type { Installation } from './process.js'

const ADMIN = '/api/admin/v1'

export interface Browser {
  /** `name=value`; empty without one. Tests may replace it. */
  cookie: string
  /** The latest Set-Cookie field. */
  readonly setCookie: string
  /** @param path below `/api/admin/v1`, or from the root if it begins with `/api/` */
  ask(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>
}

/** @param origin of the page that sends the requests */
export function openBrowser({ baseUrl }: Pick<Client, 'baseUrl'>, origin = baseUrl): Browser {
  const browser = {
    cookie: '',
    setCookie: '',
    async ask(
      method: string,
      path: string,
      body?: unknown,
      headers: Readonly<Record<string, string>> = {},
    ): Promise<Answer> {
      const response = await fetch(baseUrl + (path.startsWith('/api/') ? path : ADMIN + path), {
        method,
        redirect: 'manual',
        headers: {
          ...(method === 'GET' ? {} : { Origin: origin }),
          'Sec-Fetch-Site': 'same-origin',
          ...(browser.cookie === '' ? {} : { Cookie: browser.cookie }),
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const [set] = response.headers.getSetCookie()
      if (set !== undefined) {
        browser.setCookie = set
        browser.cookie = set.includes('Max-Age=0;') ? '' : (set.split(';')[0] ?? '')
      }
      const text = await response.text()
      return {
        status: response.status,
        headers: response.headers,
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      }
    },
  }
  return browser
}

export interface NewAccount {
  readonly email?: string
  readonly role?: Role
  /** Id; default: all. */
  readonly workspace?: string
}

let made = 0

/** Creates an account. @returns its id and the token of its one-time link */
export async function addOperator(
  installation: Pick<Installation, 'json'>,
  { email = `operator${++made}@postroad.test`, role = 'owner', workspace }: NewAccount = {},
): Promise<{ id: string; email: string; link: string }> {
  const where = workspace === undefined ? [] : ['--workspace', workspace]
  const { id, link_token: link } = await installation.json<{ id: string; link_token: string }>(
    'operator',
    'add',
    email,
    '--role',
    role,
    ...where,
  )
  return { id, email, link }
}

/** A new operator's browser, signed in by the one-time link. */
export async function signedIn(
  appliance: Pick<Installation, 'json'> & Pick<Client, 'baseUrl'>,
  account: NewAccount = {},
  origin = appliance.baseUrl,
): Promise<Browser & { readonly id: string; readonly email: string }> {
  const { id, email, link } = await addOperator(appliance, account)
  const browser = openBrowser(appliance, origin)
  const { status, body } = await browser.ask('POST', '/session/link', { token: link })
  if (status !== 200) throw new Error(`sign-in by link: ${status} ${JSON.stringify(body)}`)
  return Object.assign(browser, { id, email })
}
