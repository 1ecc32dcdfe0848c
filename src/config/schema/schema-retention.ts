/**
 * The `[retention]` section of the configuration.
 *
 * Assembled from the keys that resources declare. Received mail has its own key, `inbound.keep`.
 */
import { keeping, table } from './fields.js'

/** Retention of one kind of record, in file notation. */
export interface KeptFor {
  /** E.g. `90d`; `0` = forever. */
  readonly default: string
  /** Minimum; one day if absent. */
  readonly min?: string
  readonly description: string
}

export function retentionSection(kept: Readonly<Record<string, KeptFor>>) {
  const keys = Object.entries(kept).map(
    ([name, { min = '1d', ...notes }]) => [name, keeping({ min, ...notes })] as const,
  )
  return table<Record<string, ReturnType<typeof keeping>>>(Object.fromEntries(keys), {
    description: 'How long records are kept; 0 = forever. Older ones are deleted hourly, in small steps.',
  })
}
