/** Requests as curl commands, to be run in a POSIX shell. Pure. */

export interface Call {
  readonly method: string
  /** With query, e.g. `/api/v1/contacts?limit=100`. */
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  /** JSON, or undefined. */
  readonly body: string | undefined
  /** Name of the file that is the body instead. */
  readonly file?: string
}

/** Most calls that are kept. */
const KEPT = 12

/** The newest first, each once. */
export function withCall(calls: readonly Call[], call: Call): Call[] {
  const others = calls.filter(({ method, url }) => method !== call.method || url !== call.url)
  return [call, ...others].slice(0, KEPT)
}

export function asCurl(call: Call, origin: string): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  return [
    `curl ${call.method === 'GET' ? '' : `-X ${call.method} `}${quote(origin + call.url)}`,
    '-H "Authorization: Bearer $POSTROAD_TOKEN"',
    ...call.headers.map(([name, value]) => `-H ${quote(`${titleCase(name)}: ${value}`)}`),
    ...(call.body === undefined || call.body === '' ? [] : [`-d ${quote(call.body)}`]),
    ...(call.file === undefined ? [] : [`--data-binary ${quote(`@${call.file}`)}`]),
  ].join(' \\\n  ')
}

function titleCase(name: string): string {
  return name.replace(/(^|-)[a-z]/g, letters => letters.toUpperCase())
}
