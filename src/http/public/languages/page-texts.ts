/**
 * All texts of the public pages in one language; each language is a file in this directory.
 *
 * Texts with names or addresses are functions. They are plain text; templates escape them.
 */

/** A page with a single message. */
export interface Notice {
  readonly title: string
  readonly text: string
}

export interface PageTexts {
  /** Error pages. */
  readonly notFound: Notice
  readonly badLink: Notice
  readonly tooMany: Notice
  readonly unavailable: Notice
  readonly broken: Notice
  readonly unreadable: Notice
  readonly wrongMethod: Notice
  /** In the page footer. */
  readonly sentBy: (name: string) => string
  readonly unsubscribe: {
    readonly title: string
    readonly question: (email: string, sender: string) => string
    readonly stillComes: string
    readonly button: string
    readonly doneTitle: string
    readonly done: (email: string, sender: string) => string
    readonly mistake: string
    readonly toPreferences: string
  }
  readonly preferences: {
    readonly title: string
    readonly about: (email: string, sender: string) => string
    readonly lists: string
    readonly noLists: string
    readonly save: string
    readonly saved: string
    readonly allTitle: string
    readonly allText: (sender: string) => string
    readonly unsubscribeAll: string
    readonly unsubscribed: (email: string, sender: string) => string
    readonly subscribeAgain: string
    readonly subscribedAgain: (email: string, sender: string) => string
    readonly stopped: (email: string, sender: string) => string
  }
  readonly view: {
    readonly title: string
    readonly gone: Notice
  }
  readonly archive: {
    readonly title: string
    readonly empty: string
    readonly older: string
    readonly newest: string
    readonly feed: string
    readonly gone: Notice
  }
  readonly form: {
    readonly email: string
    readonly required: string
    readonly optional: string
    readonly choose: string
    readonly button: string
    /** Label of a hidden field that only bots fill in. */
    readonly leaveEmpty: string
    /** For people whose browser filled in the hidden field; nothing was stored yet. */
    readonly sendAgain: string
    readonly faultsTitle: string
    readonly missing: (label: string) => string
    readonly badEmail: string
    readonly badNumber: (label: string) => string
    readonly badDate: (label: string) => string
    readonly badChoice: (label: string) => string
    readonly tooLong: (label: string) => string
    readonly thanks: Notice
    readonly checkInbox: (email: string) => Notice
    readonly gone: Notice
    readonly toForm: string
  }
  readonly optIn: {
    readonly title: string
    readonly question: (email: string, sender: string) => string
    readonly button: string
    readonly ignore: string
    readonly done: (email: string, sender: string) => Notice
    readonly expired: Notice
    readonly mailSubject: (sender: string) => string
    readonly mailText: (email: string, sender: string) => string
    readonly mailButton: string
    readonly mailIgnore: string
    readonly mailExpires: (days: number) => string
  }
}
