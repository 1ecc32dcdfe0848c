/** The requests that the current screen has made, newest first, to be shown as curl commands. */

import { withCall, type Call } from './curl'

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
  state.calls = withCall(state.calls, call)
}
