/**
 * Every text that a public page shows, in one language: the files beside this one are the languages there are.
 *
 * What has a name or an address in it is a function of it. Texts are text: whatever they are put into escapes them. Holds no logic.
 */

/** A page that says one thing. */
export interface Notice {
  readonly title: string
  readonly text: string
}

export interface PageTexts {
  /** Of pages that say why there is nothing else to show. */
  readonly notFound: Notice
  readonly badLink: Notice
  readonly tooMany: Notice
  readonly unavailable: Notice
  readonly broken: Notice
  readonly unreadable: Notice
  readonly wrongMethod: Notice
  /** Before the name of whoever sends the mail, at the foot of a page. */
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
  readonly form: {
    readonly email: string
    readonly required: string
    readonly optional: string
    readonly choose: string
    readonly button: string
    /** Beside a field that only machines fill in. */
    readonly leaveEmpty: string
    /** For a person whose browser filled it in: nothing was taken yet. */
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
