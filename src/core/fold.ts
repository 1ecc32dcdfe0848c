/**
 * The one form in which texts that people wrote are compared and searched: without case and accents.
 *
 * Called by stores for what they keep beside a text, and for what is looked for. The databases fold differently and not at all
 * (SQLite knows ASCII only), so none of them is asked to. Pure. Standard: Unicode NFKD and case conversion.
 */

/** Letters that are no base letter with a mark. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ł: 'l',
  þ: 'th',
  ı: 'i',
}

export function fold(text: string): string {
  const lower = text.toLowerCase()
  if (!NON_ASCII.test(lower)) return lower
  return lower
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(NO_MARK, letter => LETTERS[letter] ?? letter)
    .toLowerCase()
}

const NON_ASCII = /[^\0-\x7f]/
const NO_MARK = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')

/** Words of one search at most; further ones are passed over. */
const MOST_WORDS = 10

/** What a search asks for: each of these has to be somewhere. */
export function searchWords(text: string): string[] {
  return [
    ...new Set(
      fold(text)
        .split(/[\s\p{Cc}]+/u)
        .filter(Boolean),
    ),
  ].slice(0, MOST_WORDS)
}
