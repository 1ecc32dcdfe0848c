/** What can go wrong with a request, in the form screens show it. */
import { tr } from '../i18n/i18n'

interface More {
  readonly status?: number
  readonly path?: string
  readonly rule?: string
  readonly limit?: number
  readonly retryAfterSeconds?: number
}

export class ApiFault extends Error {
  /** Of the API, e.g. `validation_error`; `network` if no answer came. */
  readonly code: string
  /** 0 without an answer. */
  readonly status: number
  /** The field at fault, e.g. `/email`. */
  readonly path: string | undefined
  /** What its value breaks, e.g. `max_length`; undefined if the API says it only in words. */
  readonly rule: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: string, message: string, more: More = {}) {
    super(wordsFor(code, more) ?? message)
    this.code = code
    this.status = more.status ?? 0
    this.path = more.path
    this.rule = more.rule
    this.retryAfterSeconds = more.retryAfterSeconds
  }
}

/** In the viewer's language, by what the API names with a code; its own words, which are English, say the rest. */
function wordsFor(code: string, { status, rule, limit, retryAfterSeconds = 60 }: More): string | undefined {
  const { faults } = tr()
  if (code === 'network') return faults.network
  if (code === 'cancelled') return faults.cancelled
  if (status === 429) return faults.rateLimited(retryAfterSeconds)
  if (status === 412) return faults.conflict
  if (rule !== undefined) return faults.rules[rule]?.(limit)
  return faults.codes[code]
}

interface ErrorBody {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly path?: string
    readonly rule?: string
    readonly limit?: number
  }
}

export function faultOf(response: Response, body: unknown): ApiFault {
  const { error = {} } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
  const retryAfter = Number(response.headers.get('Retry-After') ?? NaN)
  return new ApiFault(error.code ?? 'internal_error', error.message ?? `HTTP ${response.status}`, {
    status: response.status,
    ...(error.path === undefined ? {} : { path: error.path }),
    ...(error.rule === undefined ? {} : { rule: error.rule }),
    ...(error.limit === undefined ? {} : { limit: error.limit }),
    ...(Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}),
  })
}
