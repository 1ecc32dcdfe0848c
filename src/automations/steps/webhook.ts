/**
 * The step type `webhook`: sends an HTTP request and records the response.
 *
 * Delivered at least once: the request is sent outside the transaction and repeated if a crash loses its response. Retries keep the
 * same `Idempotency-Key` until the server gives a final answer; then the key changes, because a server may replay the stored failure
 * for the old one (draft-ietf-httpapi-idempotency-key-header). Anything but 2xx fails the step. Redirects are not followed; the HTTP
 * client enforces the egress policy. The URL after its host, header values and body strings may contain merge tags. Without a
 * configured body, the request describes the contact and the run.
 */
import Type from 'typebox'
import { refusal } from '../../audience/checks.js'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContact } from '../../audience/contacts/contacts.js'
import { validText } from '../../content/merge/merge-text.js'
import { MergeError } from '../../content/merge/merge-tree.js'
import type { MergeValues } from '../../content/merge/merge-values.js'
import { parseTemplate } from '../../content/merge/parse-template.js'
import { describeError } from '../../core/errors.js'
import type { HttpResponse } from '../../world/net/fetch.js'
import { checked, choice, optional, text, type ConfigOf, type Field } from './config-fields.js'
import { checkUrl, merge, mergeHeader, mergeUrl, valuesFor } from './merged-text.js'
import { StepError, type StepContext, type StepType } from './step-type.js'
import { missing } from '../flows/flow-fault.js'

const TIMEOUT_MS = 15_000
const MAX_RESPONSE = 1_024
const MAX_BODY = 65_536
const MAX_HEADERS = 50
const MAX_VALUE = 2_000

/** Not final: in progress (409), or a gateway's answer while the request may have succeeded. */
const INCONCLUSIVE: ReadonlySet<number> = new Set([409, 502, 503, 504])

/** Set by the HTTP client (RFC 9110 §7.6.1) or by this step. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'connection', 'transfer-encoding', 'upgrade', 'te', 'trailer', 'expect'],
  ...['keep-alive', 'proxy-connection', 'proxy-authorization', 'idempotency-key'],
])
/** RFC 9110 §5.6.2: token. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
/** RFC 9110 §5.5, restricted to printable ASCII. */
const VALUE = /^[\x20-\x7e\t]*$/

const headers: Field<Readonly<Record<string, string>>> = {
  default: {},
  expected: `an object of at most ${MAX_HEADERS} header names and string values`,
  schema: Type.Record(Type.String(), Type.String({ maxLength: MAX_VALUE })),
  read(value, path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const entries = Object.entries(value)
    if (entries.length > MAX_HEADERS) return undefined
    for (const [name, text] of entries) {
      if (!TOKEN.test(name)) throw refusal(path, `${JSON.stringify(name)} is not a valid header name`)
      if (RESERVED_HEADERS.has(name.toLowerCase()))
        throw refusal(path, `${name} cannot be set; Postroad sets it`)
      if (typeof text !== 'string' || text.length > MAX_VALUE || !VALUE.test(text))
        throw refusal(`${path}.${name}`, `${name} must be a string of at most ${MAX_VALUE} ASCII characters`)
      validText(text, 'text', `${path}.${name}`)
    }
    return value as Readonly<Record<string, string>>
  },
}

type Body = string | Readonly<Record<string, unknown>>

const body: Field<Body | undefined> = {
  default: undefined,
  expected: 'an object or a string of at most 64 KB as JSON',
  schema: Type.Union([Type.Object({}), Type.String()]),
  read(value, path) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (typeof value !== 'string' && !isObject) return undefined
    if (JSON.stringify(value).length > MAX_BODY) return undefined
    try {
      mapStrings(value, text => {
        if (text.includes('\0')) throw refusal(path, 'body contains a NUL character')
        parseTemplate(text, 'text')
        return text
      })
    } catch (error) {
      throw error instanceof MergeError ? refusal(path, `body: ${error.message}`) : error
    }
    return value as Body
  },
}

const fields = {
  url: checked(text(2_048), checkUrl),
  method: choice('POST', ['GET', 'POST', 'PUT', 'PATCH']),
  headers,
  body: optional(body as Field<Body>),
}

type WebhookConfig = ConfigOf<typeof fields>

export const webhook: StepType = {
  name: 'webhook',
  fields,
  isSlow: true,
  findFault: config => Promise.resolve((config as WebhookConfig).url === '' ? missing('url') : undefined),
  async prepare(context) {
    const { parts, run } = context
    const contact = await findContact(parts.database.reader, run.workspaceId, { id: run.contactId })
    const detail = contact ? await sendRequest(context, contact) : {}
    return () => Promise.resolve({ kind: 'done', detail })
  },
}

/** @throws StepError if there is no response or its status is not 2xx */
async function sendRequest({ parts, step, run, automation }: StepContext, contact: Contact) {
  const { url, method, headers, body } = step.config as WebhookConfig
  const about = {
    automation_id: automation.id,
    run_id: run.id,
    step_id: step.id,
    contact: contactToApi(contact, run.isSandbox),
    trigger_data: run.triggerData,
  }
  const values = valuesFor(run, contact)
  const merged = body === undefined ? about : mapStrings(body, text => merge(text, values))
  const target = { url: mergeUrl(url, values), headers: mergeHeaders(headers, values) }
  const { allowPrivateWebhooks } = await parts.send.senders.workspace(automation.workspaceId)
  const { http } = parts.outgoingCalls(allowPrivateWebhooks)
  let response: HttpResponse
  try {
    response = await http.request({
      method,
      url: target.url,
      headers: {
        'content-type': typeof merged === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
        'user-agent': 'Postroad',
        ...target.headers,
        'idempotency-key': `${run.id}.${run.stepsDone}.${step.seq}.${run.refusals}`,
      },
      ...(method === 'GET' ? {} : { body: typeof merged === 'string' ? merged : JSON.stringify(merged) }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_RESPONSE,
    })
  } catch (error) {
    throw new StepError(`no response: ${describeError(error)}`, { status_code: null, body: null })
  }
  const answer = { status_code: response.status, body: response.body.toString().replaceAll('\0', '') }
  if (response.status >= 200 && response.status < 300) return answer
  const isAnswered = !INCONCLUSIVE.has(response.status)
  throw new StepError(`the web server responded with status ${response.status}`, answer, isAnswered)
}

function mergeHeaders(
  headers: Readonly<Record<string, string>>,
  values: MergeValues,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), mergeHeader(value, values)]),
  )
}

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(one => mapStrings(one, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapStrings(one, change)]))
}

type Config = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string>>

export const MASK = '********'

/** Names of credentials in HTTP (RFC 9110 §11, RFC 6265) and names that services commonly use. */
const IS_SECRET =
  /^(proxy-)?authorization$|^cookie$|(^|[-_])(token|secret|password|credentials?|signature|(api|access|auth)?[-_]?key|auth)([-_]|$)/i

export function maskSecrets(config: Config, mayWrite: boolean): Config {
  const { headers, url, body } = config
  if (!isObject(headers)) return config
  const shown = Object.entries(headers as Headers).map(([name, value]) => [
    name,
    mayWrite && !IS_SECRET.test(name) ? value : MASK,
  ])
  const masked = { ...config, headers: Object.fromEntries(shown) as Headers }
  if (mayWrite) return masked
  return {
    ...masked,
    ...(typeof url === 'string' ? { url: maskUrl(url) } : {}),
    ...(isObject(body) ? { body: maskFields(body) } : {}),
  }
}

/**
 * Replaces masks in the input by the stored values.
 *
 * @param stored the current config; absent for a new step
 * @param path of the config in the request
 */
export function restoreSecrets(input: Config, stored: Config | undefined, path: string): Config {
  const { headers, url, body } = input
  return {
    ...input,
    ...(isObject(headers) ? { headers: restoreHeaders(headers, stored?.['headers'], path) } : {}),
    ...(typeof url === 'string' ? { url: restoreUrl(url, stored?.['url'], path) } : {}),
    ...(isObject(body) && isObject(stored?.['body']) ? { body: restoreFields(body, stored['body']) } : {}),
  }
}

function restoreHeaders(headers: Config, before: unknown, path: string): Config {
  const stored = isObject(before) ? Object.entries(before) : []
  const byName = new Map(stored.map(([name, value]) => [name.toLowerCase(), value]))
  const kept = Object.entries(headers).map(([name, value]) => {
    if (value !== MASK) return [name, value]
    const known = byName.get(name.toLowerCase())
    if (known === undefined) throw unknownMask(`${path}.headers.${name}`)
    return [name, known]
  })
  return Object.fromEntries(kept) as Config
}

function restoreUrl(url: string, before: unknown, path: string): string {
  if (!url.includes(MASK)) return url
  if (typeof before === 'string' && maskUrl(before) === url) return before
  throw unknownMask(`${path}.url`)
}

function maskUrl(url: string): string {
  const [host = ''] = /^[a-z]+:\/\/[^/?#\\]*/i.exec(url) ?? []
  const rest = url.slice(host.length)
  return rest === '' || rest === '/' ? url : `${host}/${MASK}`
}

function maskFields(body: Config): Config {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      IS_SECRET.test(name) ? MASK : isObject(value) ? maskFields(value) : value,
    ]),
  )
}

function restoreFields(body: Config, before: Config): Config {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const stored = Object.hasOwn(before, name) ? before[name] : undefined
      if (value === MASK && IS_SECRET.test(name) && stored !== undefined) return [name, stored]
      return [name, isObject(value) && isObject(stored) ? restoreFields(value, stored) : value]
    }),
  )
}

function unknownMask(path: string) {
  return refusal(path, `${MASK} stands for a stored secret, but none is stored here; send the value itself`)
}

function isObject(value: unknown): value is Config {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
