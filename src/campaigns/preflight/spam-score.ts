/**
 * Asks the operator's rspamd what it makes of a mail (https://docs.rspamd.com/developers/protocol: POST /checkv2).
 *
 * Rejects if it cannot be reached or its answer cannot be read. Text of the answer is bounded.
 */
import Type from 'typebox'
import { Value } from 'typebox/value'
import type { HttpClient } from '../../world/net/fetch.js'

export interface SpamScore {
  readonly score: number
  /** From which on rspamd rejects mail. */
  readonly requiredScore: number
  /** Action that rspamd would take, e.g. `no action`, `add header`, `reject`. */
  readonly action: string
  /** Highest score first. */
  readonly symbols: readonly SpamSymbol[]
}

export interface SpamSymbol {
  readonly name: string
  /** Negative if it speaks for the mail. */
  readonly score: number
  readonly description: string
}

const TIMEOUT_MS = 20_000
const MAX_ANSWER = 1_048_576
const MAX_SYMBOLS = 100
const MAX_TEXT = 200

const Answer = Type.Object({
  score: Type.Number(),
  required_score: Type.Number(),
  action: Type.String(),
  symbols: Type.Record(
    Type.String(),
    Type.Object({ score: Type.Number(), description: Type.Optional(Type.String()) }),
  ),
})

/** The envelope of a mail, and the host that would deliver it. */
export interface SpamEnvelope {
  readonly from: string
  readonly to: string
  readonly hostname: string
}

/** @param url of rspamd's normal worker, without a trailing slash @param message complete */
export async function askRspamd(
  http: HttpClient,
  url: string,
  message: Buffer,
  { from, to, hostname }: SpamEnvelope,
): Promise<SpamScore> {
  const { status, body, isTruncated } = await http.request({
    namedBy: 'operator',
    method: 'POST',
    url: `${url}/checkv2`,
    headers: {
      'Content-Type': 'message/rfc822',
      // Otherwise it finds the client suspicious, which nobody is here.
      Helo: hostname,
      Hostname: hostname,
      ...envelope('From', from),
      ...envelope('Rcpt', to),
    },
    body: message,
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ANSWER,
  })
  if (status !== 200) throw new Error(`it answers ${status}`)
  if (isTruncated) throw new Error('its answer is too long')
  const answer: unknown = JSON.parse(body.toString())
  if (!Value.Check(Answer, answer)) throw new Error('its answer has no score')
  const symbols = Object.entries(answer.symbols)
    .filter(([, { score }]) => score !== 0)
    .map(([name, { score, description = '' }]) => ({
      name: name.slice(0, MAX_TEXT),
      score,
      description: description.slice(0, MAX_TEXT),
    }))
    .toSorted((one, other) => Math.abs(other.score) - Math.abs(one.score))
    .slice(0, MAX_SYMBOLS)
  const { score, required_score: requiredScore, action } = answer
  return { score, requiredScore, action: action.slice(0, MAX_TEXT), symbols }
}

/** Header fields hold no other characters, and rspamd does without. */
function envelope(name: string, address: string): Record<string, string> {
  return /^[\x21-\x7e]+$/.test(address) ? { [name]: address } : {}
}
