/** Forms: their fields and target lists. Holds no logic. */

export const FIELD_TYPES = ['text', 'number', 'date', 'select', 'checkbox'] as const
export type FieldType = (typeof FIELD_TYPES)[number]

/** A field besides email, which every form has. */
export interface FormField {
  /** `first_name`, `last_name` or an attribute name. */
  readonly name: string
  readonly label: string
  readonly type: FieldType
  readonly required: boolean
  /** Choices of a `select`. */
  readonly options: readonly string[]
}

export interface FormContent {
  /** Internal name. */
  readonly name: string
  /** Public heading; null shows the name. */
  readonly title: string | null
  readonly description: string | null
  readonly listIds: readonly string[]
  readonly fields: readonly FormField[]
  /** Null shows the built-in page. */
  readonly redirectUrl: string | null
  /** Submissions must be confirmed by email. A list can require that too. */
  readonly doubleOptIn: boolean
}

export interface Form extends FormContent {
  readonly id: string
  /** A sandbox has an id separate from its workspace's. */
  readonly workspaceId: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** Submitted values by field name: text, number, ISO date, or checkbox state. */
export type FieldValues = Readonly<Record<string, string | number | boolean>>
