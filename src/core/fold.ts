/**
 * Normalizes text for comparison and search: ignores case and accents. Done here because databases fold differently or not at all (SQLite
 * knows ASCII only). Pure. Standard: Unicode NFKD and case conversion.
 */

/** Letters that NFKD does not decompose. */
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

/** Words per search; further ones are ignored. */
const MAX_WORDS = 10

/** The words of a search, all of which must occur. */
export function searchWords(text: string): string[] {
  return [
    ...new Set(
      fold(text)
        .split(/[\s\p{Cc}]+/u)
        .filter(Boolean),
    ),
  ].slice(0, MAX_WORDS)
}
