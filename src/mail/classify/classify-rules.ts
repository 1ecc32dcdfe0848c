/**
 * All rules of the classifier in the order in which they are asked; the first match wins.
 *
 * Read by the classifier. Data only. Every pattern runs over the normalised reply (lower case, single spaces, repeated
 * codes and addresses taken out, at most 1,000 characters) and repeats nothing without bound next to something alike,
 * so that a match takes time in proportion to the text.
 */
import type { ReplyRule } from './classify-rule.js'
import { CODE_RULES } from './classify-rules-codes.js'
import { PROVIDER_RULES } from './classify-rules-providers.js'
import { RECEIVING_RULES } from './classify-rules-receiving.js'
import { SENDING_RULES } from './classify-rules-sending.js'

/** Words of one provider before words of many; words about us before words about the recipient; words before codes. */
export const REPLY_RULES: readonly ReplyRule[] = [
  ...PROVIDER_RULES,
  ...SENDING_RULES,
  ...RECEIVING_RULES,
  ...CODE_RULES,
]
