/**
 * Operators of an appliance under test: with a token, or signed in with a browser, which keeps the session cookie and sends what browsers
 * send.
 */
import { createToken } from '../../../src/accounts/operators/credentials.js'
import { createOperator, setRole } from '../../../src/accounts/operators/operators.js'
import { openAppliance } from '../../../src/appliance/appliance.js'
import { CONFIG_SCHEMA } from '../../../src/appliance/resources.js'
import { loadConfig } from '../../../src/config/load.js'
import { shellOperator } from '../../../src/http/operator.js'
import { ALL_WORKSPACES, type Role, type RoleGrant } from '../../../src/http/roles.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemWorld } from '../../../src/world/world.js'
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

/**
 * Makes an operator in the database.
 *
 * @param granted a role in all workspaces, or several roles
 * @returns a token of the operator
 */
export async function tokenWith(
  { configFile, environment }: Pick<Installation, 'configFile' | 'environment'>,
  granted: Role | readonly RoleGrant[],
): Promise<string> {
  const { config } = loadConfig({ schema: CONFIG_SCHEMA, file: configFile, env: environment })
  const world = { ...systemWorld(), log: new FakeLog() }
  await using appliance = await openAppliance({ config, world })
  const parts = { ...appliance, ...world }
  const [grant, ...others] =
    typeof granted === 'string' ? [{ workspaceId: ALL_WORKSPACES, role: granted }] : granted
  if (!grant) throw new Error('an operator has at least one role')
  const email = `${appliance.newId()}@operators.example`
  const shell = shellOperator('')
  const { operator } = await createOperator(parts, { email, grant }, 'sign_in', shell)
  for (const other of others) await setRole(parts, operator.id, other, shell)
  return (await createToken(parts, operator.id, { name: 'test' }, shell)).token
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
