/**
 * Matches request paths to public pages.
 *
 * Called by `public-app.ts`. Paths are few and short, such as `/u/:token`; a trailing slash is ignored. Pure.
 * Fails: never throws; a path that cannot be decoded matches nothing.
 */
import type { PublicRoute } from './public-route.js'

export interface Matched {
  /** Declared path. */
  readonly path: string
  /** All routes of the path, one per method. */
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

  /** Whether the first segment belongs to a public page, whatever follows. */
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

/** Same as `segmentsOf(path)[0]`, but fast, since every request passes here. */
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

/** GET implies HEAD, and every path supports OPTIONS. */
export function allowedMethods(routes: readonly PublicRoute[]): string {
  const methods = routes.map(({ method }) => method as string)
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort().join(', ')
}
