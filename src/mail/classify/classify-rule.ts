/**
 * The shape of one rule of the classifier; the rules themselves are in `classify-rules.ts` and
 * `classify-rules-providers.ts`.
 */
import type { Subtype } from './classify-subtypes.js'
import type { Scope, Stage } from '../outcome.js'

/** All conditions that are given have to hold. */
export interface ReplyRule {
  /** Over the reply code as text; `''` where the diagnostic has none. */
  readonly code?: RegExp
  /** Over the enhanced code as text, e.g. `5.7.1`; `''` where there is none. */
  readonly enhanced?: RegExp
  /** Over the normalised text; one of them has to match. */
  readonly text?: readonly RegExp[]
  /** Over the normalised text: the rule does not hold where this matches. */
  readonly unless?: RegExp
  /** Where the dialogue stood; a rule with stages does not hold for a reply of unknown stage. */
  readonly stage?: readonly Stage[]
  readonly subtype: Subtype
  /** Where this wording is about something else than its subtype usually is. */
  readonly scope?: Scope
}
