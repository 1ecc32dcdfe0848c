/**
 * Numbers as spreadsheets write them, with a decimal point or comma, grouped thousands and a currency.
 *
 * Not numbers, since they must stay text: leading zeros (postal codes), a plus sign (telephone numbers), more than 15 digits (card numbers, which
 * a double cannot hold), exponents, percent. Pure; linear in the cell, which is bounded.
 */
export const DECIMAL_MARKS = ['point', 'comma'] as const
export type DecimalMark = (typeof DECIMAL_MARKS)[number]

/** Longer cells are text. */
const MAX_CHARACTERS = 40
/** A double holds these exactly. */
const MAX_DIGITS = 15

const CURRENCY = String.raw`(?:\p{Sc}|(?:R|US|A|C|NZ|HK|S|NT|MX)\$|zł|Kč|Ft|kr\.?|Fr\.?|lei|лв\.?|руб\.?|р\.|грн\.?|TL|元|円|원|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|BRL|MXN|ARS|CLP|COP|PEN|INR|AUD|CAD|NZD|ZAR|SGD|HKD|TWD|KRW|ILS|AED|SAR|THB|IDR|MYR|PHP|VND)`
/** Spaces of all kinds; apostrophes as in Switzerland. */
const SPACED = String.raw`[ \u00a0\u2009\u202f'\u2019]`
const PLAIN = '0|[1-9]\\d*'

function pattern(decimal: string, grouping: string): RegExp {
  const grouped = String.raw`[1-9]\d{0,2}(?:${grouping}\d{3})+|[1-9]\d{0,2}(?:${SPACED}\d{3})+`
  // India groups by two: 12,34,567.
  const indian = grouping === ',' ? String.raw`|[1-9]\d?(?:,\d{2})+,\d{3}` : ''
  const number = String.raw`((?:${grouped}${indian}|${PLAIN})(?:${decimal}\d+)?|${decimal}\d+)`
  const space = String.raw`[ \u00a0\u202f]?`
  return new RegExp(
    `^([-\\u2212]?)(?:(${CURRENCY})${space})?([-\\u2212]?)${number}(?:${space}(${CURRENCY}))?$`,
    'u',
  )
}

const PATTERNS: Readonly<Record<DecimalMark, RegExp>> = {
  point: pattern('\\.', ','),
  comma: pattern(',', '\\.'),
}

const [ZERO, NINE] = [0x30, 0x39]

export interface CellNumber {
  readonly value: number
  /** Groups separated by ordinary spaces and nothing else that makes it a number: it may be a telephone number. */
  readonly mayBePhone: boolean
  /** As written; '' if none. */
  readonly currency: string
}

/** Fast path: up to 15 digits without a leading zero read alike with either mark. */
export function plainInteger(cell: string): number | undefined {
  if (cell.length > MAX_DIGITS || cell.length === 0) return undefined
  for (let at = 0; at < cell.length; at += 1) {
    const code = cell.charCodeAt(at)
    if (code < ZERO || code > NINE) return undefined
  }
  return cell.length > 1 && cell.charCodeAt(0) === ZERO ? undefined : Number(cell)
}

/** @param cell trimmed */
export function numberIn(cell: string, mark: DecimalMark): CellNumber | undefined {
  if (cell.length > MAX_CHARACTERS) return undefined
  const [, minus, before, inner, text, after] = PATTERNS[mark].exec(cell) ?? []
  if (text === undefined || (before !== undefined && after !== undefined) || (minus !== '' && inner !== ''))
    return undefined
  const decimal = mark === 'point' ? '.' : ','
  const at = text.indexOf(decimal)
  const whole = (at < 0 ? text : text.slice(0, at)).replace(/\D/g, '')
  const fraction = at < 0 ? '' : text.slice(at + 1)
  if (whole.length + fraction.length > MAX_DIGITS) return undefined
  const value = Number(`${whole || '0'}.${fraction || '0'}`)
  const isMoney = before !== undefined || after !== undefined || fraction !== ''
  return {
    value: value !== 0 && (minus || inner) ? -value : value,
    currency: before ?? after ?? '',
    mayBePhone: !isMoney && text.includes(' '),
  }
}
