/** What is edited of a form, its fields, and the request that stores it. Pure. */
import type { components } from '#api/rest'

export type Form = components['schemas']['Form']
export type FieldType = 'text' | 'number' | 'date' | 'select' | 'checkbox'

export interface FormField {
  readonly name: string
  readonly label: string
  readonly type: FieldType
  readonly required: boolean
  readonly options: readonly string[]
}

export const MAX_FIELDS = 20
/** Longest name of an attribute. */
const MAX_NAME = 100

export interface Draft {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly redirectUrl: string
  readonly doubleOptIn: boolean
  readonly listIds: readonly string[]
  readonly fields: readonly FormField[]
}

export const NEW_FIELD: FormField = { name: '', label: '', type: 'text', required: false, options: [] }

export function draftOf(form: Form): Draft {
  return {
    name: form.name,
    title: form.title ?? '',
    description: form.description ?? '',
    redirectUrl: form.redirect_url ?? '',
    doubleOptIn: form.double_opt_in,
    listIds: form.list_ids,
    fields: form.fields,
  }
}

export function changesOf(draft: Draft): components['schemas']['FormChanges'] {
  return {
    name: draft.name.trim(),
    title: draft.title.trim() || null,
    description: draft.description.trim() || null,
    redirect_url: draft.redirectUrl.trim() || null,
    double_opt_in: draft.doubleOptIn,
    list_ids: [...draft.listIds],
    fields: draft.fields.map(({ name, label, type, required, options }) => ({
      name: name.trim(),
      label: label.trim(),
      type,
      required,
      ...(type === 'select' ? { options: options.map(text => text.trim()).filter(Boolean) } : {}),
    })),
  }
}

/** The name of the attribute that a label suggests, e.g. `shoe_size` for “Shoe size”; '' if it has no Latin letter. */
export function nameFor(label: string): string {
  return label
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^[^a-z]+/, '')
    .slice(0, MAX_NAME)
    .replace(/_$/, '')
}

/** The name follows the label while it is what the label suggests. */
export function relabelled(field: FormField, label: string): FormField {
  return field.name === nameFor(field.label) ? { ...field, label, name: nameFor(label) } : { ...field, label }
}

/** Only a choice has options. */
export function retyped(field: FormField, type: FieldType): FormField {
  return { ...field, type, options: type === 'select' ? field.options : [] }
}

/** @returns undefined if it cannot be moved there */
export function moved(
  fields: readonly FormField[],
  from: number,
  to: number,
): readonly FormField[] | undefined {
  const one = fields[from]
  if (!one || to < 0 || to >= fields.length || from === to) return undefined
  const others = fields.filter((_, index) => index !== from)
  return [...others.slice(0, to), one, ...others.slice(to)]
}
