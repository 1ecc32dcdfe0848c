/** Texts of the setup checklist: English. */
export const setup = {
  setup: {
    title: 'Setting up',
    intro: (done: string, all: string) => `${done} of ${all} steps are done. Each is ticked by itself.`,
    dismiss: 'Dismiss',
    dismissed: 'The checklist is dismissed. It is still in the settings of the workspace.',
    show: 'Show the setup checklist',
    allDone: 'All steps of the checklist are done.',
    done: 'Done',
    open: 'To do',
    steps: {
      company: {
        title: 'Name and postal address',
        why: 'Marketing mail has to say who sends it and where to write to; the footer shows both.',
        go: 'To the settings',
      },
      sender: {
        title: 'A domain to send from',
        why: 'Receivers trust mail that is signed for the domain of its sender. Publish the records, and they are checked again by themselves.',
        go: 'To the domains',
      },
      delivery: {
        title: 'What other mail hosts see',
        why: 'They look at the name of this server, its reverse DNS and its SPF record before they accept mail; and port 25 has to be open.',
        go: 'To the checks',
      },
      mail: {
        title: 'A first email',
        why: 'Create a key, put it into POSTROAD_KEY and run this. The step is done as soon as the email is accepted.',
        go: 'Create a key',
      },
      contacts: {
        title: 'First contacts',
        why: 'Campaigns and automations are for contacts: import a file, or add one by hand.',
        go: 'To the contacts',
      },
      campaign: {
        title: 'A first campaign',
        why: 'A campaign sends one text to a list or segment, and reports who read it.',
        go: 'To the campaigns',
      },
    },
    showMessage: 'Show the email',
    language: 'Language',
    sample: 'Request',
    checking: 'The checks are running…',
    notRight: 'Not right yet:',
  },
}
