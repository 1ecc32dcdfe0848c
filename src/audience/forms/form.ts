/** Types of forms: a form, the event of its submission, and what forms need from the composition root. Holds no logic. */
import type { Services } from '../../db/services.js'
import type { OpenWindow } from '../../http/sliding-window.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Sender } from '../../http/public/public-route.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import type { AudienceParts } from '../audience-parts.js'

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

/** A mail that its recipient requested. */
export interface RequestedMail {
  readonly to: string
  readonly subject: string
  readonly html: string
  readonly text: string
}

export interface RequestedMailer {
  /** Of the From that the mails will have. */
  readonly fromDomain: string
  /** Sends in the caller's transaction, outside the workspace's sending limits. */
  readonly send: (tx: Tx, mail: RequestedMail) => Promise<void>
}

/** A form's workspace, as visitors see it. */
export interface FormOwner {
  readonly sender: Sender
  readonly isSandbox: boolean
  /** Mails per hour and per day; 0 = unlimited. */
  readonly hourlyLimit: number
  readonly dailyLimit: number
}

export interface FormParts extends AudienceParts, Pick<Services, 'log' | 'publicUrl'> {
  /** For limits that hold over all nodes; undefined if one process counts for itself. */
  readonly openWindow?: OpenWindow | undefined
  readonly linkKeys: LinkKeys
  /** @returns undefined if the workspace was removed */
  readonly findPublicSender: (db: Queries, workspaceId: string) => Promise<FormOwner | undefined>
  /**
   * Looks up the workspace's sender before the transaction begins.
   *
   * @throws AppError missing_from_email, domain_invalid, unavailable, workspace_not_found
   */
  readonly openRequestedMail: (workspaceId: string) => Promise<RequestedMailer>
}

/** @param publicUrl without a trailing slash */
export function formUrl(publicUrl: string, formId: string): string {
  return `${publicUrl}/f/${formId}`
}

declare module '../../events/event.js' {
  interface ContactEvents {
    /** Submitted and, for double opt-in, confirmed. */
    'form.submitted': ContactEventOf<
      'form.submitted',
      { readonly form_id: string; readonly contact_id: string; readonly fields: FieldValues }
    >
  }
}

/** Fields that set the contact's name; all others set attributes. */
export function isNamePart(name: string): name is 'first_name' | 'last_name' {
  return name === 'first_name' || name === 'last_name'
}
