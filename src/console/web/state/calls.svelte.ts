/** The requests that the current screen has made, newest first, to be shown as curl commands. */

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

const KEPT = 12
const SHOWN_HEADERS = ['x-workspace', 'x-sandbox', 'content-type', 'if-match']

const state = $state<{ calls: Call[] }>({ calls: [] })

export function calls(): readonly Call[] {
  return state.calls
}

export function forgetCalls(): void {
  state.calls = []
}

/** Sign-ins are left out: their bodies hold secrets. */
export async function recordCall(request: Request): Promise<void> {
  const { pathname, search } = new URL(request.url)
  if (pathname.includes('/session') || pathname.endsWith('/password')) return
  const isJson = request.headers.get('Content-Type')?.startsWith('application/json') ?? false
  keepCall({
    method: request.method,
    url: pathname + search,
    headers: [...request.headers].filter(([name]) => SHOWN_HEADERS.includes(name)),
    body: isJson ? await request.text() : undefined,
  })
}

export function keepCall(call: Call): void {
  const others = state.calls.filter(({ method, url }) => method !== call.method || url !== call.url)
  state.calls = [call, ...others].slice(0, KEPT)
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
