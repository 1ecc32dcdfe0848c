/**
 * The `[retention]` section of the configuration: how long things are kept.
 *
 * Put together of the keys that resources declare beside what they keep. Mail that came in has its own key, `inbound.keep`.
 */
import { keeping, table } from './fields.js'

/** How long a kind of record is kept, as the operator writes it. */
export interface KeptFor {
  /** E.g. `90d`; `0` = for ever. */
  readonly default: string
  /** The shortest that makes sense; a day where absent. */
  readonly min?: string
  readonly description: string
}

export function retentionSection(kept: Readonly<Record<string, KeptFor>>) {
  const keys = Object.entries(kept).map(
    ([name, { min = '1d', ...notes }]) => [name, keeping({ min, ...notes })] as const,
  )
  return table<Record<string, ReturnType<typeof keeping>>>(Object.fromEntries(keys), {
    description:
      'How long things are kept; 0 = for ever. What is older is deleted by the hour, in small steps beside the mail.',
  })
}
