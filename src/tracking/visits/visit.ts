/**
 * A visit: somebody or something asked for the pixel or a link of a message. As it is kept until it is counted, one line of JSON each.
 *
 * Made by the routes, written by the journal, read by whoever counts. Pure. Fails: reading never throws.
 */
export interface Visit {
  readonly kind: 'open' | 'click'
  readonly messageId: string
  /** Ms since epoch UTC. */
  readonly at: number
  /** IP address. */
  readonly address: string
  /** At most 500 characters. */
  readonly userAgent: string
  /** Asked for with HEAD: no reader does that. */
  readonly isHead: boolean
  /** Of a click. */
  readonly url?: string
}

/** With its line break. */
export function visitLine({ kind, messageId, at, address, userAgent, isHead, url }: Visit): string {
  return `${JSON.stringify([kind, messageId, at, address, userAgent, isHead ? 1 : 0, url])}\n`
}

/** @param line without its line break @returns undefined for what is no line of ours */
export function readVisitLine(line: string): Visit | undefined {
  const [kind, messageId, at, address, userAgent, isHead, url] = valuesIn(line)
  if (kind !== 'open' && kind !== 'click') return undefined
  if (typeof messageId !== 'string' || typeof at !== 'number') return undefined
  if (typeof address !== 'string' || typeof userAgent !== 'string') return undefined
  const visit = { kind, messageId, at, address, userAgent, isHead: isHead === 1 } as const
  return typeof url === 'string' ? { ...visit, url } : visit
}

function valuesIn(line: string): readonly unknown[] {
  try {
    const values: unknown = JSON.parse(line)
    return Array.isArray(values) ? (values as readonly unknown[]) : []
  } catch {
    return []
  }
}
