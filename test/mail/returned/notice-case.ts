/** A free-text bounce and its expected result. */
import type { Subtype } from '../../../src/mail/classify/classify-subtypes.js'

export interface NoticeCase {
  readonly name: string
  readonly source: Buffer
  /** Address, subtype of its failure, status where it matters. */
  readonly expected: readonly (readonly [recipient: string, subtype: Subtype, status?: string])[]
  readonly kind?: 'bounce' | 'delay'
  /** Whether Message-ID of the original has to be found. */
  readonly hasOriginal?: boolean
}
