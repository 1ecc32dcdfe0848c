/** Words for yes and no in the larger languages, without case and accents. Pure. */
import { fold } from '../../../core/fold.js'

function words(text: string): string[] {
  return text.split(' ').map(fold)
}

const YES = new Set(
  words(
    'true yes y t ja j oui o si sí s sim vero vrai verdadero verdadeiro wahr waar tak prawda да истина так evet doğru igen kyllä ' +
      'sand sann ano pravda da はい 真 是 对 예 네 نعم כן हाँ',
  ),
)
const NO = new Set(
  words(
    'false no n f nein non não nao falso faux falsch onwaar nee nie fałsz нет ложь ні hayır yanlış nem ei falsk nej nei ne nepravda nu ' +
      'いいえ 偽 否 不 错 아니요 لا לא नहीं',
  ),
)

/** @param cell in any case @returns undefined for any other word */
export function truthIn(cell: string): boolean | undefined {
  if (cell.length > 12) return undefined
  const word = fold(cell)
  if (YES.has(word)) return true
  return NO.has(word) ? false : undefined
}
