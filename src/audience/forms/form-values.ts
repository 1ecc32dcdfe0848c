/**
 * Parses a submission against the form's fields.
 *
 * Unknown fields are ignored, since a host page may have named buttons.
 * Pure. Never throws; invalid values are returned as faults, in the order of the form.
 */
import type { FormFields } from '../../http/public/form-body.js'
import { normalizedAddress, readAddress } from '../../mail/address.js'
import type { FieldValues, FormField } from './form.js'

/** A hidden field that only bots fill in. Browsers and password managers have no autofill for its name. */
export const HONEYPOT = 'leave_blank'

/** Maximum characters of a text field; names have a lower limit. */
export const MOST_TEXT = 500
export const MOST_NAME = 100

export type FaultKind = 'missing' | 'badEmail' | 'badNumber' | 'badDate' | 'badChoice' | 'tooLong'

export interface Fault {
  /** `email`, or a field's name. */
  readonly name: string
  readonly kind: FaultKind
}

export interface Filled {
  /** Normalized (`normalizedAddress`). */
  readonly email: string
  readonly values: FieldValues
}

export function readFilled(
  fields: readonly FormField[],
  form: FormFields,
): Filled | { readonly faults: readonly Fault[] } {
  const faults: Fault[] = []
  const written = (form.get('email') ?? '').trim()
  const fault = emailFault(written)
  if (fault) faults.push({ name: 'email', kind: fault })
  const values: Record<string, string | number | boolean> = {}
  for (const field of fields) {
    const read = readValue(field, (form.get(field.name) ?? '').trim())
    if (read === undefined) continue
    if (typeof read === 'object') faults.push({ name: field.name, kind: read.fault })
    else values[field.name] = read
  }
  return faults.length > 0 ? { faults } : { email: normalizedAddress(written), values }
}

function emailFault(text: string): FaultKind | undefined {
  if (text === '') return 'missing'
  return 'fault' in readAddress(text) ? 'badEmail' : undefined
}

/** @returns undefined for an empty optional field */
function readValue(
  { name, type, required, options }: FormField,
  text: string,
): string | number | boolean | { readonly fault: FaultKind } | undefined {
  if (type === 'checkbox') {
    const isTicked = text !== '' && !/^(false|0|off|no)$/i.test(text)
    return isTicked || !required ? isTicked : { fault: 'missing' }
  }
  if (text === '') return required ? { fault: 'missing' } : undefined
  switch (type) {
    case 'number':
      return /^[-+]?\d{1,15}(?:[.,]\d{1,15})?$/.test(text)
        ? Number(text.replace(',', '.'))
        : { fault: 'badNumber' }
    case 'date':
      return isDate(text) ? text : { fault: 'badDate' }
    case 'select':
      return options.includes(text) ? text : { fault: 'badChoice' }
    case 'text': {
      const most = name === 'first_name' || name === 'last_name' ? MOST_NAME : MOST_TEXT
      return text.length > most ? { fault: 'tooLong' } : withoutControls(text)
    }
  }
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const at = Date.parse(`${text}T00:00:00Z`)
  // Date.parse accepts February 30 as a day in March.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text)
}

function withoutControls(text: string): string {
  // eslint-disable-next-line no-control-regex -- these are what it is about
  return text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim()
}
