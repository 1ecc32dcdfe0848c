/** What a screen needs to show a mail, wherever it is stored. */
import type { components } from '#api/admin'

export type MailContent = components['schemas']['MailContent']

export interface ShownMail {
  /** Path of the mail in the admin API, e.g. `/api/admin/v1/captured/7`: below it are `source` and, for mail with a page, `rendered`. */
  readonly url: string
  readonly content: () => Promise<MailContent>
  readonly source: () => Promise<string>
  /** Whether its HTML may be shown. */
  readonly hasPage: boolean
}

export const MAIL_TABS = ['preview', 'text', 'source', 'headers', 'attachments'] as const
export type MailTab = (typeof MAIL_TABS)[number]

export const isMailTab = (name: string): name is MailTab => MAIL_TABS.some(tab => tab === name)
