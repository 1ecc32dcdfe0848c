/** The event of a submitted form. Holds no logic. */
import type { FieldValues } from './form.js'

declare module '../../events/event.js' {
  interface ContactEvents {
    /** Submitted and, for double opt-in, confirmed. */
    'form.submitted': ContactEventOf<
      'form.submitted',
      { readonly form_id: string; readonly contact_id: string; readonly fields: FieldValues }
    >
  }
}
