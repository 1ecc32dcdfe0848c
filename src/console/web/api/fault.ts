/** What can go wrong with a request, in the form screens show it. */
import { tr } from '../i18n/i18n'

export class ApiFault extends Error {
  /** Of the API, e.g. `validation_error`; `network` if no answer came. */
  readonly code: string
  /** 0 without an answer. */
  readonly status: number
  /** The field at fault, e.g. `/email`. */
  readonly path: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(
    code: string,
    message: string,
    more: { readonly status?: number; readonly path?: string; readonly retryAfterSeconds?: number } = {},
  ) {
    super(wordsFor(code, more) ?? message)
    this.code = code
    this.status = more.status ?? 0
    this.path = more.path
    this.retryAfterSeconds = more.retryAfterSeconds
  }
}

/** In the viewer's language, for faults that every form may meet. */
function wordsFor(
  code: string,
  { status, retryAfterSeconds = 60 }: { readonly status?: number; readonly retryAfterSeconds?: number },
): string | undefined {
  const { faults } = tr()
  if (code === 'network') return faults.network
  if (code === 'cancelled') return faults.cancelled
  if (status === 429) return faults.rateLimited(retryAfterSeconds)
  if (status === 412) return faults.conflict
  return undefined
}

interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string; readonly path?: string }
}

export function faultOf(response: Response, body: unknown): ApiFault {
  const { error = {} } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
  const retryAfter = Number(response.headers.get('Retry-After') ?? NaN)
  return new ApiFault(error.code ?? 'internal_error', error.message ?? `HTTP ${response.status}`, {
    status: response.status,
    ...(error.path === undefined ? {} : { path: error.path }),
    ...(Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}),
  })
}
