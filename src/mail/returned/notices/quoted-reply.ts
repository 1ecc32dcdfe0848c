/**
 * Finds the SMTP reply that a mail system quotes in the middle of its own sentences.
 *
 * Called with diagnostics of DSNs and with the paragraphs of free-text bounces. Pure.
 * Standards: RFC 5321 §4.2 (reply codes), RFC 3463 (enhanced codes), RFC 3464 §2.3.6 (Diagnostic-Code).
 * Fails: never; text that quotes no reply gives no codes and all of the text.
 */
import { given } from '../../../core/given.js'
import { isUnspecific } from '../status-code.js'

export interface QuotedReply {
  /** 0 where none is quoted. */
  readonly code: number
  /** RFC 3463 code that stands beside it, in brackets after it, or alone. */
  readonly enhanced?: string
}

/** `550 5.1.1`, `550-5.1.1`, `550: 5.1.1`, `550-'5.2.2`, `[550] [5.1.1]`, `#550 5.1.1`, `550 #5.1.1`. */
const PAIR =
  /(?<![\d.:/-])([245]\d\d)(?:[\])]|[ :,'"-]){0,4}\s?[[(#'"]{0,2}([245]\.\d{1,3}\.\d{1,3})(?![\d.]\d|\d)/g

/** A code where a reply begins: at the start, after what announces it, or on a line of its own. */
const CODE_AT_START = /^[\s'"[(<#:]{0,10}([45]\d\d)(?=[\s\-:;,'"\])]|$)/
const CODE_ANNOUNCED =
  /(?:\b(?:said|says|was|response|responded|reply|replied|returned|reason|error|code|status|error_code|smtp|message|text|following|command|host\b.{0,120}\]|to)\b[^\n:;]{0,40}?[:;,]|<<<|->|=>|\.\.\.|returned|error|code|with)[\s'"[(<#:]{0,10}([45]\d\d)(?=[\s\-:;,'"\])]|$)/i
const CODE_ON_LINE = /(?:^|\n)[ \t>*-]{0,20}([45]\d\d)(?:[- ](?=\S)|: )/
const CODE_BEFORE_TEXT = /(?<![\w.:/@=-])([45]\d\d)[ -](?=['"<(#]?[A-Za-z])/

const ENHANCED_ALONE = /(?<![\w.:/@=-])#?([245]\.\d{1,2}\.\d{1,3})(?![\w.]\w|\d)/g

export function findQuotedReply(text: string): QuotedReply {
  const bounded = text.slice(0, 4_000)
  const pair = findPair(bounded)
  if (pair) return pair
  const code =
    CODE_AT_START.exec(bounded)?.[1] ??
    CODE_ANNOUNCED.exec(bounded)?.[1] ??
    CODE_ON_LINE.exec(bounded)?.[1] ??
    CODE_BEFORE_TEXT.exec(bounded)?.[1]
  const enhanced = findEnhanced(bounded, code)
  return { code: Number(code ?? 0), ...given({ enhanced }) }
}

/** The first pair; behind one that says only that time ran out, the obstacle that was quoted last. */
function findPair(text: string): QuotedReply | undefined {
  let first: QuotedReply | undefined
  for (const [, code = '', enhanced = ''] of text.matchAll(PAIR)) {
    const pair = { code: Number(code), enhanced }
    // `441 4.4.1` and `550 5.1.1` belong together, `250 5.1.1` and `192 5.x.y` do not.
    if (pair.code < 400) continue
    if (first === undefined) first = pair
    else if (first.enhanced !== undefined && isUnspecific(first.enhanced) && !isUnspecific(enhanced))
      return pair
  }
  return first
}

/** Of the same class as the code where there is one. */
function findEnhanced(text: string, code: string | undefined): string | undefined {
  for (const [, enhanced = ''] of text.matchAll(ENHANCED_ALONE))
    if (code === undefined ? !enhanced.startsWith('2') : enhanced.startsWith(code.charAt(0))) return enhanced
  return undefined
}
