/**
 * The HTML of a form, for its own page and for embedding, and the reading of what was filled in.
 *
 * Every field has a label; errors name their field and appear next to it; entered values are kept. Works without scripts.
 * Unknown fields are ignored, since a host page may have named buttons. Invalid values are returned as faults, in the order of the form.
 * Standards: HTML Living Standard §4.10 (forms, autofill), WCAG 2.2 §3.3 (input assistance). Pure; never throws.
 */
import type { FormFields } from '../../http/public/form-body.js'
import { html, type Html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import { normalizedAddress, readAddress, trimAddress } from '../../mail/address.js'
import type { FieldValues, Form, FormField } from './form.js'
import { tidyHtml } from './tidy-html.js'

export interface Shown {
  readonly form: Form
  readonly texts: PageTexts
  /** Values entered so far. */
  readonly filled?: FormFields
  readonly faults?: readonly Fault[]
  /** The honeypot field was filled in. */
  readonly isToSendAgain?: boolean
}

/** Autofill tokens by field name. */
const AUTOFILL: Readonly<Record<string, string>> = {
  first_name: 'given-name',
  last_name: 'family-name',
  company: 'organization',
  phone: 'tel',
  city: 'address-level2',
  country: 'country-name',
}

export function formContent(shown: Shown): Html {
  const { form, texts } = shown
  return html`${form.description !== null && html`<p>${form.description}</p>`} ${faultList(shown)}
    ${
      shown.isToSendAgain === true && html`<div class="bad" role="alert"><p>${texts.form.sendAgain}</p></div>`
    }
    <form method="post" novalidate>${inputs(shown)}<button>${texts.form.button}</button></form>`
}

/** For embedding; the host page supplies the style. @param url of the form's page */
export function embedded({ form, texts }: Pick<Shown, 'form' | 'texts'>, url: string): string {
  const fields = html`<form method="post" action="${url}">
    ${inputs({ form, texts })}<button>${texts.form.button}</button>
  </form>`
  return tidyHtml(fields.toString())
}

function inputs(shown: Shown): Html {
  const { form, texts } = shown
  const email: FormField = {
    name: 'email',
    label: texts.form.email,
    type: 'text',
    required: true,
    options: [],
  }
  return html`${[email, ...form.fields].map(field => fieldOf(field, shown))} ${honeypot(texts)}`
}

/**
 * Hidden by attributes only, since the host page has its own style and may forbid inline ones; `inert` keeps it unreachable if that style
 * shows it anyway. The `data-` attributes make 1Password, LastPass, Bitwarden and Dashlane skip it.
 */
function honeypot({ form }: PageTexts): Html {
  return html`<div hidden inert aria-hidden="true">
    <label
      >${form.leaveEmpty}
      <input
        name="${HONEYPOT}"
        value=""
        tabindex="-1"
        autocomplete="off"
        data-1p-ignore
        data-lpignore="true"
        data-bwignore
        data-form-type="other"
    /></label>
  </div>`
}

function fieldOf(field: FormField, shown: Shown): Html {
  const { texts, filled, faults = [] } = shown
  const { name, label, type, required } = field
  const fault = faults.find(one => one.name === name)
  const id = `f-${name}`
  const value = filled?.get(name) ?? ''
  const invalid = fault && html` aria-invalid="true" aria-describedby="${id}-fault"`
  const hint = html`<small>(${required ? texts.form.required : texts.form.optional})</small>`
  const note = fault && html`<p class="fault" id="${id}-fault">${faultText(fault, label, texts)}</p>`
  if (type === 'checkbox')
    return html`<div class="field">
      <label class="check"
        ><input
          type="checkbox"
          id="${id}"
          name="${name}"
          value="true"
          ${value !== '' && html` checked`}${required && html` required`}${invalid}
        /><span>${label} ${hint}</span></label
      >${note}
    </div>`
  return html`<div class="field">
    <label for="${id}">${label} ${hint}</label>
    ${type === 'select' ? choice(field, id, value, invalid, texts) : input(field, id, value, invalid)}${note}
  </div>`
}

function input(
  { name, type, required }: FormField,
  id: string,
  value: string,
  invalid: Html | undefined,
): Html {
  const isEmail = name === 'email'
  const kind = isEmail ? 'email' : type === 'number' ? 'text' : type
  const maxLength = isEmail ? 254 : name.endsWith('_name') ? MAX_NAME_LENGTH : MAX_TEXT_LENGTH
  return html`<input
    id="${id}"
    name="${name}"
    type="${kind}"
    value="${value}"
    autocomplete="${isEmail ? 'email' : (AUTOFILL[name] ?? 'off')}"
    ${type === 'number' && html` inputmode="decimal"`}${kind !== 'date' && html` maxlength="${maxLength}"`}${
      required && html` required`
    }${invalid}
  />`
}

function choice(
  { name, required, options }: FormField,
  id: string,
  value: string,
  invalid: Html | undefined,
  { form }: PageTexts,
): Html {
  return html`<select id="${id}" name="${name}" ${required && html` required`}${invalid}>
    <option value="">${form.choose}</option>
    ${options.map(
      option => html`<option value="${option}" ${option === value && html` selected`}>${option}</option>`,
    )}
  </select>`
}

/** Announced by screen readers on load; each error links to its field. */
function faultList({ form, texts, faults = [] }: Shown): Html | undefined {
  if (faults.length === 0) return undefined
  const labels = new Map(form.fields.map(({ name, label }) => [name, label]))
  return html`<div class="bad" role="alert">
    <p>${texts.form.faultsTitle}</p>
    <ul>
      ${faults.map(
        fault =>
          html`<li>
            <a href="#f-${fault.name}"
              >${faultText(fault, labels.get(fault.name) ?? texts.form.email, texts)}</a
            >
          </li>`,
      )}
    </ul>
  </div>`
}

export function faultText({ kind }: Fault, label: string, { form }: PageTexts): string {
  const text = form[kind]
  return typeof text === 'string' ? text : text(label)
}

/** A hidden field that only bots fill in. Browsers and password managers have no autofill for its name. */
export const HONEYPOT = 'leave_blank'

/** Maximum characters of a text field; names have a lower limit. */
export const MAX_TEXT_LENGTH = 500
export const MAX_NAME_LENGTH = 100

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
  const written = trimAddress(form.get('email') ?? '')
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
      const maxLength = name === 'first_name' || name === 'last_name' ? MAX_NAME_LENGTH : MAX_TEXT_LENGTH
      return text.length > maxLength ? { fault: 'tooLong' } : withoutControls(text)
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
