/** What a form is: what it asks for, and which lists whoever fills it in gets into. Holds no logic. */

export const FIELD_TYPES = ['text', 'number', 'date', 'select', 'checkbox'] as const
export type FieldType = (typeof FIELD_TYPES)[number]

/** A question beside that for the address, which every form asks. */
export interface FormField {
  /** `first_name`, `last_name`, or the name of an attribute. */
  readonly name: string
  readonly label: string
  readonly type: FieldType
  readonly required: boolean
  /** Of a select. */
  readonly options: readonly string[]
}

export interface FormContent {
  /** For whoever manages it. */
  readonly name: string
  /** For visitors; null: the name. */
  readonly title: string | null
  readonly description: string | null
  readonly listIds: readonly string[]
  readonly fields: readonly FormField[]
  /** Where a browser goes afterwards; null: a page of ours. */
  readonly redirectUrl: string | null
  /** What is filled in waits until it is confirmed by mail; a list may ask for that by itself. */
  readonly doubleOptIn: boolean
}

export interface Form extends FormContent {
  readonly id: string
  /** Of a sandbox the sandbox's. */
  readonly workspaceId: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** What was filled in, by the name of the field: text, number, ISO date, or whether it was ticked. */
export type FieldValues = Readonly<Record<string, string | number | boolean>>
