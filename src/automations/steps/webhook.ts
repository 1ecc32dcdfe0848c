/**
 * The step `webhook`: asks a web server of the workspace's choosing, and notes what it answered.
 *
 * The request is made outside of any transaction, and again where a crash kept its answer from being written down: at least once. The
 * `Idempotency-Key` stays the same until the server has answered, since it may have acted without our hearing of it. After an answer of
 * failure the next attempt has a key of its own: servers that keep answers by key (draft-ietf-httpapi-idempotency-key-header) would repeat
 * the old one for ever. An answer that is no 2xx is a failure of the step. Where it may lead is the HTTP client's to say;
 * redirects are not followed. The URL behind its host, values of headers and texts of the body may have merge tags; without a body it tells
 * of contact and run.
 */
import Type from 'typebox'
import { refusal } from '../../audience/checks.js'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContact } from '../../audience/contacts/contacts.js'
import { MergeError } from '../../content/merge/merge-error.js'
import type { MergeValues } from '../../content/merge/merge-values.js'
import { parseTemplate } from '../../content/merge/parse-template.js'
import { describeError } from '../../core/errors.js'
import { requireReadable } from '../../msa/merged-content.js'
import type { HttpResponse } from '../../world/net/fetch.js'
import { checked, choice, optional, text, type ConfigOf, type Field } from './config-fields.js'
import { checkUrl, merge, mergeHeader, mergeUrl, valuesFor } from './merged-text.js'
import { StepFault, type Coming, type StepType } from './step-type.js'

const TIMEOUT_MS = 15_000
/** Of the answer, in octets: as much as is kept. */
const MOST_KEPT = 1_024
const MOST_BODY = 65_536
const MOST_HEADERS = 50
const MOST_VALUE = 2_000

/** Answers after which the request may still have been, or still be, carried out: in progress (409), or a gateway's word. */
const UNDECIDED: ReadonlySet<number> = new Set([409, 502, 503, 504])

/** Fields that the connection or the request itself decides (RFC 9110 §7.6.1). */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'connection', 'transfer-encoding', 'upgrade', 'te', 'trailer', 'expect'],
  ...['keep-alive', 'proxy-connection', 'proxy-authorization', 'idempotency-key'],
])
/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
/** RFC 9110 §5.5, of printable ASCII. */
const VALUE = /^[\x20-\x7e\t]*$/

const headers: Field<Readonly<Record<string, string>>> = {
  usual: {},
  what: `an object of at most ${MOST_HEADERS} names with a text each`,
  schema: Type.Record(Type.String(), Type.String({ maxLength: MOST_VALUE })),
  read(value, path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const entries = Object.entries(value)
    if (entries.length > MOST_HEADERS) return undefined
    for (const [name, text] of entries) {
      if (!TOKEN.test(name)) throw refusal(path, `${JSON.stringify(name)} is no name of a header`)
      if (OWN_HEADERS.has(name.toLowerCase())) throw refusal(path, `${name} is set by the request itself`)
      if (typeof text !== 'string' || text.length > MOST_VALUE || !VALUE.test(text))
        throw refusal(`${path}.${name}`, `${name} must be a text of at most ${MOST_VALUE} ASCII characters`)
      requireReadable(text, 'text', `${path}.${name}`)
    }
    return value as Readonly<Record<string, string>>
  },
}

type Body = string | Readonly<Record<string, unknown>>

const body: Field<Body | undefined> = {
  usual: undefined,
  what: 'an object or a text, of at most 64 KB as JSON',
  schema: Type.Union([Type.Object({}), Type.String()]),
  read(value, path) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (typeof value !== 'string' && !isObject) return undefined
    if (JSON.stringify(value).length > MOST_BODY) return undefined
    try {
      mapTexts(value, text => {
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
  findFault: config => Promise.resolve((config as WebhookConfig).url === '' ? 'has no url' : undefined),
  async prepare(coming) {
    const { parts, run } = coming
    const contact = await findContact(parts.database.reader, run.workspaceId, { id: run.contactId })
    const detail = contact ? await ask(coming, contact) : {}
    return () => Promise.resolve({ kind: 'done', detail })
  },
}

/** @throws StepFault where there is no answer, or it is none of success */
async function ask({ parts, step, run, automation }: Coming, contact: Contact) {
  const { url, method, headers, body } = step.config as WebhookConfig
  const about = {
    automation_id: automation.id,
    run_id: run.id,
    step_id: step.id,
    contact: contactToApi(contact, run.isSandbox),
    trigger_data: run.triggerData,
  }
  const values = valuesFor(run, contact)
  const filled = body === undefined ? about : mapTexts(body, text => merge(text, values))
  const target = { url: mergeUrl(url, values), headers: filledHeaders(headers, values) }
  const { allowPrivateWebhooks } = await parts.send.senders.workspace(automation.workspaceId)
  const { http } = parts.outgoingCalls(allowPrivateWebhooks)
  let response: HttpResponse
  try {
    response = await http.request({
      method,
      url: target.url,
      headers: {
        'content-type': typeof filled === 'string' ? 'text/plain; charset=utf-8' : 'application/json',
        'user-agent': 'Postroad',
        ...target.headers,
        'idempotency-key': `${run.id}.${run.stepsDone}.${step.seq}.${run.refusals}`,
      },
      ...(method === 'GET' ? {} : { body: typeof filled === 'string' ? filled : JSON.stringify(filled) }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MOST_KEPT,
    })
  } catch (error) {
    throw new StepFault(`no answer: ${describeError(error)}`, { status_code: null, body: null })
  }
  const answer = { status_code: response.status, body: response.body.toString().replaceAll('\0', '') }
  if (response.status >= 200 && response.status < 300) return answer
  const isAnswered = !UNDECIDED.has(response.status)
  throw new StepFault(`the web server answered ${response.status}`, answer, isAnswered)
}

function filledHeaders(
  headers: Readonly<Record<string, string>>,
  values: MergeValues,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), mergeHeader(value, values)]),
  )
}

/** The value with every text in it replaced. */
function mapTexts(value: unknown, replaced: (text: string) => string): unknown {
  if (typeof value === 'string') return replaced(value)
  if (Array.isArray(value)) return value.map(one => mapTexts(one, replaced))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapTexts(one, replaced)]))
}
