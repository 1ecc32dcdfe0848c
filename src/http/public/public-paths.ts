/**
 * Which declared page a path means.
 *
 * Called by `public-app.ts`. Paths are a handful of short ones, `/u/:token`; a slash at the end counts for nothing. Pure.
 * Fails: never throws; a path that cannot be decoded is no page's.
 */
import type { PublicRoute } from './public-route.js'

export interface Matched {
  /** As declared. */
  readonly path: string
  /** All of this path, one a method. */
  readonly routes: readonly PublicRoute[]
  readonly params: Readonly<Record<string, string>>
}

interface Declared {
  readonly path: string
  readonly segments: readonly string[]
  readonly routes: PublicRoute[]
}

export class PublicPaths {
  private readonly declared: readonly Declared[]
  private readonly firstSegments: ReadonlySet<string>

  constructor(routes: readonly PublicRoute[]) {
    const byPath = new Map<string, Declared>()
    for (const route of routes) {
      const known = byPath.get(route.path)
      if (known) known.routes.push(route)
      else byPath.set(route.path, { path: route.path, segments: segmentsOf(route.path), routes: [route] })
    }
    this.declared = [...byPath.values()]
    this.firstSegments = new Set(this.declared.map(({ segments: [first = ''] }) => first))
  }

  /** Whether its first segment is one of ours, whatever follows. */
  serves(path: string): boolean {
    return this.firstSegments.has(firstSegmentOf(path).toLowerCase())
  }

  match(path: string): Matched | undefined {
    const segments = segmentsOf(path)
    const found = this.declared.find(one => isSame(one.segments, segments))
    const params = found && paramsOf(found.segments, segments)
    return found && params && { path: found.path, routes: found.routes, params }
  }
}

/** The first of `segmentsOf`; all requests are asked for it. */
function firstSegmentOf(path: string): string {
  if (!path.startsWith('/') || path.startsWith('//')) return segmentsOf(path)[0] ?? ''
  const end = path.indexOf('/', 1)
  return path.slice(1, end === -1 ? undefined : end)
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment, at, all) => segment !== '' || (at > 0 && at < all.length - 1))
}

function isSame(declared: readonly string[], asked: readonly string[]): boolean {
  return (
    declared.length === asked.length &&
    declared.every((one, at) => one.startsWith(':') || one === asked[at]?.toLowerCase())
  )
}

function paramsOf(
  declared: readonly string[],
  asked: readonly string[],
): Readonly<Record<string, string>> | undefined {
  try {
    return Object.fromEntries(
      declared.flatMap((one, at) =>
        one.startsWith(':') ? [[one.slice(1), decodeURIComponent(asked[at] ?? '')]] : [],
      ),
    )
  } catch {
    return undefined
  }
}

/** HEAD goes with GET, and OPTIONS with everything. */
export function allowedMethods(routes: readonly PublicRoute[]): string {
  const methods = routes.map(({ method }) => method as string)
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort().join(', ')
}
