/**
 * Finds the type of a column of text: numbers, dates or yes and no, if one way of reading fits every cell.
 *
 * `ColumnTypes` sees the cells one by one and keeps only the readings that fitted all of them, so a column of text costs next to nothing
 * after its first cell. Cells that read differently in two ways that both fit the whole column leave it ambiguous; it then stays text until
 * somebody chooses. Empty cells say nothing. A type declared for the attribute is used although some cells do not fit: those are counted,
 * and stay text. Pure; memory is a few values per column.
 */
import { DATE_ORDERS, datesIn, isIsoDay, isoDate, type DateOrder } from './cell-dates.js'
import { listIn } from './cell-lists.js'
import { DECIMAL_MARKS, numberIn, plainInteger, type DecimalMark } from './cell-numbers.js'
import { ATTRIBUTE_TYPES, type AttributeType } from '../../attributes/declared-values.js'
import { foldedName } from './column-names.js'
import { truthIn } from './truth-words.js'

export const COLUMN_TYPES = ATTRIBUTE_TYPES
export type ColumnTypeName = AttributeType

/** Notation of the whole file, where it is known. */
export interface TypeRules {
  readonly decimal?: DecimalMark | undefined
  readonly dateOrder?: Exclude<DateOrder, 'YMD'> | undefined
}

export interface ColumnType {
  readonly type: ColumnTypeName
  /** Of numbers that have one. */
  readonly decimal?: DecimalMark
  /** Of dates. */
  readonly dateFormat?: DateOrder
  /** First cells of the type, as written, and what they become; none of text and lists, which may be anybody's. */
  readonly examples: readonly { readonly cell: string; readonly value: string }[]
  /** Both readings fit the whole column. The column is text unless the type was chosen, which then cannot be applied. */
  readonly ambiguous?: 'decimal' | 'date_format'
  /** A column of text, most of whose cells are of this type; and the first that is not. */
  readonly almost?: { readonly type: ColumnTypeName } & Misfit
  /** Only of a column read as the type that its attribute is declared as: cells of another type, which stay text. */
  readonly misfits?: { readonly count: number; readonly examples: readonly Misfit[] }
}

export interface Misfit {
  readonly line: number
  /** Null unless it is short. */
  readonly cell: string | null
}

const MAX_EXAMPLES = 3
const MAX_EXAMPLE_LENGTH = 60
/** A longer misfit may be somebody's name or address, which an erasure would not find here. */
const MAX_MISFIT_LENGTH = 12
/** Cells examined for `almost`. */
const SAMPLE = 1_000
/** Fraction of the sample that is of the type. */
const MOST = 0.5

/** Names of columns whose numbers are no quantities. */
const STAYS_TEXT =
  /phone|telef|^tel$|mobil|movil|handy|whatsapp|^fax|zip(?:code)?$|postal|postcode|^plz$|postleitzahl|^cap$|iban|isbn|passport|電話|电话|手机|邮编|郵便番号|телефон|индекс/

export class ColumnTypes {
  private readonly chosen: ColumnTypeName | undefined
  private readonly isKeptText: boolean
  private decimals: readonly DecimalMark[]
  private orders: readonly DateOrder[]
  private canBeTruth = true
  private readonly truths = new Set<boolean>()
  private hasLongWord = false
  private isDecimalSeen = false
  private differsByMark = false
  private differsByOrder = false
  private mayBePhones = false
  private currency: string | undefined
  private cells = 0
  private readonly fits = { number: 0, date: 0 }
  private readonly misfits: {
    number?: { cell: string; line: number }
    date?: { cell: string; line: number }
  } = {}
  private readonly first: string[] = []
  /** The type is declared, not chosen for this file. */
  private readonly isDeclared: boolean
  private unfit = 0
  private readonly firstUnfit: Misfit[] = []
  private readonly hasDateOrder: boolean

  /** @param name of the column @param wanted undefined to find the type */
  constructor(name: string, wanted: WantedType | undefined, rules: TypeRules = {}) {
    const chosen = wanted?.type
    this.chosen = chosen
    this.isDeclared = wanted?.isDeclared === true
    this.hasDateOrder = rules.dateOrder !== undefined
    this.isKeptText = chosen === undefined && STAYS_TEXT.test(foldedName(name))
    this.decimals = rules.decimal ? [rules.decimal] : DECIMAL_MARKS
    const { dateOrder } = rules
    this.orders = dateOrder ? ['YMD', dateOrder] : DATE_ORDERS
    if (this.isKeptText || chosen === 'text' || chosen === 'list') this.decimals = []
    if (this.decimals.length === 0 || chosen === 'number' || chosen === 'boolean') this.orders = []
    if (chosen === 'date' || chosen === 'boolean') this.decimals = []
    this.canBeTruth = chosen === undefined && !this.isKeptText
  }

  /** Whether further cells can change nothing. */
  get isDecided(): boolean {
    if (!this.isText) return false
    if (this.isDeclared && this.chosen === 'boolean') return false
    return this.isKeptText || this.chosen !== undefined || this.cells >= SAMPLE
  }

  private get isText(): boolean {
    return this.decimals.length === 0 && this.orders.length === 0 && !this.canBeTruth
  }

  /** @param cell as in the file */
  see(cell: string, line: number): void {
    if (this.isDecided) return
    const text = cell.trim()
    if (text === '') return
    this.cells += 1
    const { unfit } = this
    const isSample = this.cells <= SAMPLE
    if (this.isDeclared && this.chosen === 'boolean' && booleanIn(text) === undefined)
      this.seeMisfit(text, line)
    if (this.canBeTruth) this.seeTruth(text)
    if (this.decimals.length > 0 || isSample) this.seeNumber(text, line)
    if (this.orders.length > 0 || isSample) this.seeDate(text, line)
    if (this.unfit > unfit) return
    if (this.first.length < MAX_EXAMPLES && !this.first.includes(text)) this.first.push(text)
  }

  finish(): ColumnType {
    const type = this.found()
    const ambiguous = this.ambiguity(type)
    const isApplied = ambiguous === undefined
    const [decimal] = this.decimals
    const [dateFormat] = this.orders
    const reading: Omit<ColumnType, 'examples'> = {
      type: isApplied || (this.chosen !== undefined && !this.isDeclared) ? type : 'text',
      ...(type === 'number' && isApplied && this.isDecimalSeen && decimal ? { decimal } : {}),
      ...(type === 'date' && isApplied && dateFormat ? { dateFormat } : {}),
      ...(ambiguous === undefined ? {} : { ambiguous }),
    }
    const convert = isApplied ? converterOf(reading) : String
    const isKnown = (type !== 'text' && type !== 'list') || ambiguous !== undefined
    const examples = (isKnown ? this.first : []).map(cell => ({
      cell: cell.slice(0, MAX_EXAMPLE_LENGTH),
      value: String(convert(cell) ?? cell).slice(0, MAX_EXAMPLE_LENGTH),
    }))
    if (this.isDeclared && isApplied)
      return { ...reading, examples, misfits: { count: this.unfit, examples: this.firstUnfit } }
    const almost =
      type === 'text' && !this.isKeptText && this.chosen === undefined ? this.almost() : undefined
    return { ...reading, examples, ...(almost ? { almost } : {}) }
  }

  private seeTruth(text: string): void {
    const truth = truthIn(text)
    if (truth === undefined) this.canBeTruth = false
    else {
      this.truths.add(truth)
      this.hasLongWord ||= text.length > 2
    }
  }

  private seeNumber(text: string, line: number): void {
    if (plainInteger(text) !== undefined) {
      this.fits.number += 1
      return
    }
    const read = DECIMAL_MARKS.map(mark => ({ mark, number: numberIn(text, mark) })).filter(
      ({ number }) => number !== undefined,
    )
    const [one, other] = read
    if (one?.number) this.fits.number += 1
    else this.misfits.number ??= { cell: text, line }
    this.decimals = this.narrowed(this.decimals, mark => read.some(found => found.mark === mark), text, line)
    if (!one?.number) return
    if (other?.number && other.number.value !== one.number.value) this.differsByMark = true
    this.isDecimalSeen ||= !Number.isInteger(one.number.value) || !other || this.differsByMark
    this.mayBePhones ||= one.number.mayBePhone
    if (one.number.currency !== '') {
      this.currency ??= one.number.currency
      // Amounts in several currencies cannot be compared.
      if (one.number.currency !== this.currency && this.chosen === undefined) this.decimals = []
    }
  }

  private seeDate(text: string, line: number): void {
    if (isIsoDay(text)) {
      this.fits.date += 1
      // With a given order such days may stand among others of that order.
      if (this.hasDateOrder && this.chosen !== undefined) return
      if (this.orders.length > 1) this.orders = this.orders.filter(order => order === 'YMD')
      else if (this.orders[0] !== 'YMD' && this.chosen === undefined) this.orders = []
      return
    }
    const read = datesIn(text)
    const { DMY, MDY } = read
    if (DMY || MDY || read.YMD) this.fits.date += 1
    else this.misfits.date ??= { cell: text, line }
    this.orders = this.narrowed(this.orders, order => read[order] !== undefined, text, line)
    if (DMY && MDY && isoDate(DMY) !== isoDate(MDY)) this.differsByOrder = true
  }

  /** Cells that fit no reading of a chosen type are rejected with their rows later, those of a declared type stay text. */
  private narrowed<Reading>(
    readings: readonly Reading[],
    fits: (one: Reading) => boolean,
    text: string,
    line: number,
  ): readonly Reading[] {
    const left = readings.filter(fits)
    if (left.length > 0 || readings.length === 0 || this.chosen === undefined) return left
    if (this.isDeclared) this.seeMisfit(text, line)
    return readings
  }

  private seeMisfit(text: string, line: number): void {
    this.unfit += 1
    if (this.firstUnfit.length < MAX_EXAMPLES) this.firstUnfit.push(misfitOf(text, line))
  }

  private found(): ColumnTypeName {
    if (this.chosen !== undefined) return this.chosen
    if (this.cells === 0) return 'text'
    // Country codes and the like may be words for yes or no too.
    if (this.canBeTruth && (this.truths.size === 2 || this.hasLongWord)) return 'boolean'
    // Groups of three digits between spaces are telephone numbers too.
    const isPhones = this.mayBePhones && !this.isDecimalSeen && this.currency === undefined
    if (this.decimals.length > 0 && !isPhones) return 'number'
    return this.orders.length > 0 ? 'date' : 'text'
  }

  private ambiguity(type: ColumnTypeName): ColumnType['ambiguous'] {
    if (type === 'number' && this.decimals.length === 2 && this.differsByMark) return 'decimal'
    const isEither = this.orders.includes('DMY') && this.orders.includes('MDY')
    return type === 'date' && isEither && this.differsByOrder ? 'date_format' : undefined
  }

  private almost(): ColumnType['almost'] {
    const sample = Math.min(this.cells, SAMPLE)
    const type = this.fits.number >= this.fits.date ? 'number' : 'date'
    const misfit = this.misfits[type]
    return misfit && sample > 1 && Math.min(sample, this.fits[type]) > MOST * sample
      ? { type, ...misfitOf(misfit.cell, misfit.line) }
      : undefined
  }
}

function misfitOf(text: string, line: number): Misfit {
  return { line, cell: text.length > MAX_MISFIT_LENGTH || text.includes('@') ? null : text }
}

/** The type that a column is to be read as. */
export interface WantedType {
  readonly type: ColumnTypeName
  /** Declared for the attribute; chosen for this file otherwise. */
  readonly isDeclared: boolean
}

export type CellConverter = (cell: string) => string | number | boolean | readonly unknown[] | undefined

/** @returns reads a cell that is not empty; undefined if it is not of the type */
export function converterOf({
  type,
  decimal,
  dateFormat,
}: Pick<ColumnType, 'type' | 'decimal' | 'dateFormat'>): CellConverter {
  if (type === 'number') {
    const mark = decimal ?? 'point'
    return cell => plainInteger(cell) ?? numberIn(cell.trim(), mark)?.value
  }
  if (type === 'boolean') return cell => booleanIn(cell.trim())
  if (type === 'list') return listIn
  if (type === 'text') return cell => cell
  const orders = dateFormat ? [dateFormat] : DATE_ORDERS
  return cell => {
    if (isIsoDay(cell)) return cell
    const read = datesIn(cell.trim())
    const date = orders.map(order => read[order]).find(one => one !== undefined)
    return date && isoDate(date)
  }
}

function booleanIn(text: string): boolean | undefined {
  return TRUTH_DIGITS.get(text) ?? truthIn(text)
}

/** Understood where the type is chosen or declared; a column of them alone is numbers. */
const TRUTH_DIGITS = new Map([
  ['1', true],
  ['0', false],
])
