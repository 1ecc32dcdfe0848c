/**
 * Fields that conversions and product views have in common, each with the check that a schema cannot express.
 *
 * Pure. Fails with AppError validation_error, naming the field.
 */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'

export const Currency = Type.String({ minLength: 3, maxLength: 3, description: 'ISO 4217, e.g. EUR.' })

/** More than any price, and exact to the cent. */
const MOST_MONEY = 1_000_000_000_000

export const Money = (description: string) =>
  Type.Number({ minimum: -MOST_MONEY, maximum: MOST_MONEY, description })

export const Metadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Whatever else is worth keeping: at most 8 KB as JSON, nested at most 32 deep.',
})

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

/** @returns in capitals */
export function checkCurrency(text: string): string {
  const currency = text.toUpperCase()
  if (!CURRENCIES.has(currency))
    throw new AppError('validation_error', 'currency is not an ISO 4217 code such as EUR', {
      path: 'currency',
    })
  return currency
}

const MOST_METADATA = 8 * 1_024
const MOST_NESTING = 32

export function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  // Looked at first: what is nested too deep cannot be written as JSON without end of the stack.
  const isFlat = isNestedWithin(metadata, MOST_NESTING)
  if (isFlat && Buffer.byteLength(JSON.stringify(metadata)) <= MOST_METADATA) return
  throw new AppError(
    'validation_error',
    isFlat ? 'metadata is larger than 8 KB' : `metadata is nested deeper than ${MOST_NESTING} levels`,
    { path: 'metadata' },
  )
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(inner => isNestedWithin(inner, levels - 1))
}
