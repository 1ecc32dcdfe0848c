/** The event that a form adds to the event log. Holds no logic. */
import type { FieldValues } from './form.js'

declare module '../../events/event.js' {
  interface ContactEvents {
    /** Somebody filled in a form and, where that is asked for, confirmed it. */
    'form.submitted': ContactEventOf<
      'form.submitted',
      { readonly form_id: string; readonly contact_id: string; readonly fields: FieldValues }
    >
  }
}
