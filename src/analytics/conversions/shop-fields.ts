/** Fields shared by conversions and product views, with checks that a schema cannot express. Fails: AppError validation_error. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'

export const Currency = Type.String({ minLength: 3, maxLength: 3, description: 'ISO 4217, e.g. EUR.' })

/** Above any price; a double is exact to the cent up to here. */
const MAX_MONEY = 1_000_000_000_000

export const Money = (description: string) =>
  Type.Number({ minimum: -MAX_MONEY, maximum: MAX_MONEY, description })

export const Metadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Any further data, at most 8 KB as JSON and 32 levels deep.',
})

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

/** @returns the code in upper case */
export function checkCurrency(text: string): string {
  const currency = text.toUpperCase()
  if (!CURRENCIES.has(currency))
    throw new AppError('validation_error', 'currency is not an ISO 4217 code such as EUR', {
      path: 'currency',
    })
  return currency
}

const MAX_METADATA = 8 * 1_024
const MAX_NESTING = 32

export function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  // Checked first: JSON.stringify would overflow the stack on deeper nesting.
  const isFlat = isNestedWithin(metadata, MAX_NESTING)
  if (isFlat && Buffer.byteLength(JSON.stringify(metadata)) <= MAX_METADATA) return
  throw new AppError(
    'validation_error',
    isFlat ? 'metadata is larger than 8 KB' : `metadata is nested deeper than ${MAX_NESTING} levels`,
    { path: 'metadata' },
  )
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(inner => isNestedWithin(inner, levels - 1))
}
