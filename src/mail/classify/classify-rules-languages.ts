/**
 * Classifier rules made of the wordings in `classify-languages.ts`.
 *
 * Matched against normalized text, in which case and accents are folded. A reply that mentions the sender, its address or rate, a policy or
 * the content holds nothing against the recipient, whatever else it says. Of two readings ("unknown or full") the milder counts: full before
 * closed before unknown.
 */
import { fold } from '../../core/fold.js'
import { LANGUAGE_WORDINGS, type LanguageWordings } from './classify-languages.js'
import type { ReplyRule } from './classify-subtypes.js'

/** Characters between a mailbox and its predicate; bounded, so that matching is linear. */
const GAP = '[^.;]{0,40}?'

/** Of scripts that separate words, so that `ip` is found between Chinese characters too. */
const LETTER = '[\\p{Script=Latin}\\p{Script=Cyrillic}]'
/** Chinese and Japanese do not separate words. */
const UNSEPARATED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u

/** Written out where a charset lacks them. */
const DIGRAPHS: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', å: 'aa' }

/** About our host. They precede the rules about recipients. */
export const LANGUAGE_REPUTATION_RULES: readonly ReplyRule[] = LANGUAGE_WORDINGS.map(({ reputation }) => ({
  text: [anyOf(reputation)],
  subtype: 'bad_reputation',
}))

export const LANGUAGE_RECIPIENT_RULES: readonly ReplyRule[] = LANGUAGE_WORDINGS.flatMap(recipientRules)

function recipientRules(words: LanguageWordings): ReplyRule[] {
  const { mailbox, unknown, full, disabled, temporary, notMailbox, domain } = words
  const unless = anyOf(notMailbox)
  const closed = said(mailbox, disabled, words.disabledSentences)
  // "The recipient's domain does not exist" is about the domain.
  const notUnknown = new RegExp(
    `${unless.source}|${source(domain)}${GAP}${source(unknown)}|${source(temporary)}`,
    'u',
  )
  return [
    { text: said(mailbox, full, words.fullSentences), unless, subtype: 'mailbox_full' },
    {
      text: [
        `${source(temporary)}${GAP}${source(disabled)}`,
        `${source(disabled)}${GAP}${source(temporary)}`,
      ].map(pattern => new RegExp(pattern, 'u')),
      unless,
      subtype: 'mailbox_unavailable',
    },
    { text: closed, unless, subtype: 'mailbox_disabled' },
    {
      text: [
        ...said(mailbox, unknown, words.unknownSentences),
        new RegExp(`${source(unknown)}[^.;]{0,12}?${source(mailbox)}`, 'u'),
      ],
      unless: notUnknown,
      subtype: 'no_such_mailbox',
    },
  ]
}

function said(mailbox: readonly string[], what: readonly string[], sentences: readonly string[]): RegExp[] {
  const near = new RegExp(`${source(mailbox)}${GAP}${source(what)}`, 'u')
  return sentences.length === 0 ? [near] : [near, anyOf(sentences)]
}

function anyOf(wordings: readonly string[]): RegExp {
  return new RegExp(source(wordings), 'u')
}

function source(wordings: readonly string[]): string {
  return `(?:${wordings.map(sourceOf).join('|')})`
}

function sourceOf(wording: string): string {
  return wording
    .split(' … ')
    .map(part => part.split(' ').map(wordSource).join(' '))
    .join(GAP)
}

function wordSource(word: string): string {
  const isStem = word.endsWith('*')
  const letters = Array.from((isStem ? word.slice(0, -1) : word).toLowerCase(), letterSource).join('')
  if (UNSEPARATED.test(word)) return letters
  return `(?<!${LETTER})${letters}${isStem ? `${LETTER}{0,15}` : `(?!${LETTER})`}`
}

/** A letter with an accent is also matched without it, written as two, or replaced because the charset was lost. */
function letterSource(letter: string): string {
  if (letter === "'") return "['\u2019 ]?"
  if (/[a-z0-9-]/.test(letter)) return letter
  const plain = fold(letter)
  if (!/^[a-z]+$/.test(plain)) return plain.replaceAll('.', String.raw`\.`)
  const digraph = DIGRAPHS[letter]
  return `(?:${digraph === undefined ? '' : `${digraph}|`}${plain}|[?\\ufffd]{1,2})`
}
