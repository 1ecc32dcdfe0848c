/** Public pages in English. */
import type { PageTexts } from './page-texts.js'

export const en: PageTexts = {
  notFound: {
    title: 'Page not found',
    text: 'This page does not exist. Part of the link may be missing; please open it again from the email.',
  },
  badLink: {
    title: 'This link does not work',
    text: 'Part of it may be missing. Please open it from the email, or copy the complete link. Nothing was changed.',
  },
  tooMany: {
    title: 'Too many requests',
    text: 'There were too many requests from your network. Please try again in a minute.',
  },
  unavailable: {
    title: 'Temporarily unavailable',
    text: 'Please try again in a few minutes. Nothing was changed.',
  },
  broken: {
    title: 'Something went wrong',
    text: 'This is our fault, and the error was logged. Please try again later.',
  },
  unreadable: {
    title: 'Invalid request',
    text: 'We could not read what was sent. Please go back and try again. Nothing was changed.',
  },
  wrongMethod: {
    title: 'This does not work here',
    text: 'This address does not support this kind of request. Please open the link from the email.',
  },
  sentBy: name => `Sent by ${name}`,
  unsubscribe: {
    title: 'Unsubscribe',
    question: (email, sender) => `Stop sending newsletters and offers from ${sender} to ${email}?`,
    stillComes: 'You will still receive emails that you request, such as receipts.',
    button: 'Unsubscribe',
    doneTitle: 'You are unsubscribed',
    done: (email, sender) => `${email} will no longer receive newsletters and offers from ${sender}.`,
    mistake: 'Was this a mistake, or would you like to choose which emails you receive?',
    toPreferences: 'Email preferences',
  },
  preferences: {
    title: 'Email preferences',
    about: (email, sender) => `Emails ${email} receives from ${sender}.`,
    lists: 'I would like to receive',
    noLists: 'There are no topics to choose from.',
    save: 'Save',
    saved: 'Your preferences have been saved.',
    allTitle: 'All emails',
    allText: sender => `Stop all newsletters and offers from ${sender}.`,
    unsubscribeAll: 'Unsubscribe from all',
    unsubscribed: (email, sender) => `${email} does not receive newsletters and offers from ${sender}.`,
    subscribeAgain: 'Subscribe again',
    subscribedAgain: (email, sender) => `${email} will receive emails from ${sender} again.`,
    stopped: (email, sender) =>
      `Emails to ${email} have been stopped: they could not be delivered, were reported as spam, or ${sender} stopped them. ` +
      `Please contact ${sender} to receive them again.`,
  },
  view: {
    title: 'Email',
    gone: {
      title: 'This email is no longer available',
      text: 'Emails can be viewed here for a limited time. The copy in your mailbox is the same.',
    },
  },
  archive: {
    title: 'Past emails',
    empty: 'Nothing has been published here yet.',
    older: 'Older emails',
    newest: 'Newest emails',
    feed: 'Subscribe to this page (RSS)',
    gone: {
      title: 'This email is not published',
      text: 'It may have been taken back. The other emails are listed in the archive.',
    },
  },
  form: {
    email: 'Email address',
    required: 'required',
    optional: 'optional',
    choose: 'Please choose',
    button: 'Subscribe',
    leaveEmpty: 'Leave this field empty',
    sendAgain:
      'Please submit the form again. A hidden field had been filled in, perhaps by your browser; it is empty now.',
    faultsTitle: 'Please check your entries',
    missing: label => `${label} is required.`,
    badEmail: 'Please enter a valid email address.',
    badNumber: label => `${label} must be a number.`,
    badDate: label => `${label} must be a date, such as 2026-05-31.`,
    badChoice: label => `Please choose one of the options for ${label}.`,
    tooLong: label => `${label} is too long.`,
    thanks: { title: 'Thank you', text: 'We have received your subscription.' },
    checkInbox: email => ({
      title: 'One more step',
      text: `We have sent an email to ${email}. Please open it and confirm your subscription. If you cannot find it, check your spam folder.`,
    }),
    gone: { title: 'This form is closed', text: 'It no longer accepts subscriptions.' },
    toForm: 'Back to the form',
  },
  optIn: {
    title: 'Confirm your subscription',
    question: (email, sender) => `Should ${email} receive emails from ${sender}?`,
    button: 'Confirm',
    ignore: 'If you did not request this, close this page and nothing will happen.',
    done: (email, sender) => ({
      title: 'You are subscribed',
      text: `${email} will now receive emails from ${sender}. Each one has a link to unsubscribe.`,
    }),
    expired: {
      title: 'This link has expired',
      text: 'It was valid for a few days only. Please subscribe again to get a new one.',
    },
    mailSubject: sender => `Please confirm your subscription: ${sender}`,
    mailText: (email, sender) =>
      `Someone, probably you, asked for ${email} to receive emails from ${sender}. Please confirm the subscription.`,
    mailButton: 'Confirm subscription',
    mailIgnore: 'If this was not you, ignore this message and you will not be subscribed.',
    mailExpires: days => `The link is valid for ${days} days.`,
  },
}
