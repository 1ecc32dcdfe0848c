/** Public pages in English. */
import type { PageTexts } from './page-texts.js'

export const en: PageTexts = {
  notFound: {
    title: 'There is nothing here',
    text: 'This page does not exist. Perhaps part of the link got lost; open it from the email once more.',
  },
  badLink: {
    title: 'This link does not work',
    text: 'Part of it may have got lost on its way. Open it from the email itself, or copy all of it. Nothing was changed.',
  },
  tooMany: {
    title: 'Too many requests',
    text: 'Many requests came from your network in a short time. Please try again in a minute.',
  },
  unavailable: {
    title: 'Not possible at the moment',
    text: 'Please try again in a few minutes. Nothing was changed.',
  },
  broken: {
    title: 'Something went wrong',
    text: 'This is our fault, and it was noted. Please try again later.',
  },
  unreadable: {
    title: 'This could not be read',
    text: 'What was sent is no form of ours. Please go back and try again. Nothing was changed.',
  },
  wrongMethod: {
    title: 'Not this way',
    text: 'This address does not take that kind of request. Please open the link from the email.',
  },
  sentBy: name => `Mail from ${name}`,
  unsubscribe: {
    title: 'Unsubscribe',
    question: (email, sender) => `Should ${email} get no more newsletters and offers from ${sender}?`,
    stillComes: 'Mail that you ask for yourself, such as receipts, still comes.',
    button: 'Unsubscribe',
    doneTitle: 'You are unsubscribed',
    done: (email, sender) => `${email} gets no more newsletters and offers from ${sender}.`,
    mistake: 'Was it a mistake, or do you want to choose what you get?',
    toPreferences: 'Email preferences',
  },
  preferences: {
    title: 'Email preferences',
    about: (email, sender) => `What ${email} gets from ${sender}.`,
    lists: 'I want to get',
    noLists: 'There are no topics to choose from.',
    save: 'Save',
    saved: 'Your choice was saved.',
    allTitle: 'Everything',
    allText: sender => `No newsletters and offers from ${sender} at all.`,
    unsubscribeAll: 'Unsubscribe from all',
    unsubscribed: (email, sender) => `${email} gets no newsletters and offers from ${sender}.`,
    subscribeAgain: 'Subscribe again',
    subscribedAgain: (email, sender) => `${email} gets mail from ${sender} again.`,
    stopped: (email, sender) =>
      `Mail to ${email} was stopped: it could not be delivered, was reported as spam, or ${sender} has stopped it. ` +
      `Please write to ${sender} if you want it again.`,
  },
  view: {
    title: 'Email',
    gone: {
      title: 'This email is no longer kept',
      text: 'Emails can be read here for some time after they were sent. The one in your mailbox is the same.',
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
      'Please submit the form again. A hidden field was filled in, perhaps by your browser; it is empty now.',
    faultsTitle: 'Please check what you have filled in',
    missing: label => `${label} is required.`,
    badEmail: 'This is no email address that can be written to.',
    badNumber: label => `${label} has to be a number.`,
    badDate: label => `${label} has to be a date, such as 2026-05-31.`,
    badChoice: label => `Please choose one of the entries for ${label}.`,
    tooLong: label => `${label} is too long.`,
    thanks: { title: 'Thank you', text: 'We have received your subscription.' },
    checkInbox: email => ({
      title: 'One more step',
      text: `We have sent a message to ${email}. Please open it and confirm there. If it does not come, look among the spam.`,
    }),
    gone: { title: 'This form is closed', text: 'It takes no more subscriptions.' },
    toForm: 'To the form',
  },
  optIn: {
    title: 'Confirm your subscription',
    question: (email, sender) => `Should ${email} get mail from ${sender}?`,
    button: 'Confirm',
    ignore: 'If you did not ask for this, close this page; then nothing happens.',
    done: (email, sender) => ({
      title: 'You are subscribed',
      text: `From now on ${email} gets mail from ${sender}. Each of them has a link to unsubscribe.`,
    }),
    expired: {
      title: 'This link has expired',
      text: 'It could be used for some days only. Please subscribe once more; a new message comes then.',
    },
    mailSubject: sender => `Please confirm your subscription: ${sender}`,
    mailText: (email, sender) =>
      `Somebody, probably you, wants ${email} to get mail from ${sender}. Please confirm that this is right.`,
    mailButton: 'Confirm subscription',
    mailIgnore: 'If it was not you, ignore this message: then nothing comes.',
    mailExpires: days => `The link works for ${days} days.`,
  },
}
