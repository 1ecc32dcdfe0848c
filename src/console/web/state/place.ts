/** Places of the console, and the URLs that lead to them. Pure. */

export const BASE = '/console'
/** Parameters that go along to every screen. */
const LASTING = ['workspace', 'sandbox']

export interface Place {
  /** Below `/console`, e.g. `/messages/0192…`. */
  readonly path: string
  readonly query: URLSearchParams
}

export type Query = Readonly<Record<string, string | undefined>>

export function readPlace({
  pathname,
  search,
}: {
  readonly pathname: string
  readonly search: string
}): Place {
  return {
    path: /^(?:\/+[^/]+)*/.exec(pathname.slice(BASE.length))?.[0] || '/',
    query: new URLSearchParams(search),
  }
}

/** The URL of another screen. Parameters that are undefined or empty are left out, the lasting ones too. */
export function urlFrom({ query: current }: Pick<Place, 'query'>, path: string, query: Query = {}): string {
  const wanted = new URLSearchParams()
  for (const name of LASTING) {
    const value = current.get(name)
    if (value !== null) wanted.set(name, value)
  }
  return BASE + path + textOf(changed(wanted, query))
}

/** The URL of the same place with other parameters; empty ones are left out. */
export function urlWith({ path, query }: Place, changes: Query): string {
  return BASE + path + textOf(changed(new URLSearchParams(query), changes))
}

function changed(query: URLSearchParams, changes: Query): URLSearchParams {
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  return query
}

function textOf(query: URLSearchParams): string {
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** Whether a path of the server is one of the console's. */
export function isInConsole(pathname: string): boolean {
  return `${pathname}/`.startsWith(`${BASE}/`)
}
