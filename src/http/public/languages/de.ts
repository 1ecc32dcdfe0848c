/** Public pages in German. */
import type { PageTexts } from './page-texts.js'

export const de: PageTexts = {
  notFound: {
    title: 'Hier ist nichts',
    text: 'Diese Seite gibt es nicht. Vielleicht fehlt ein Teil des Links; öffnen Sie ihn noch einmal aus der E-Mail.',
  },
  badLink: {
    title: 'Dieser Link funktioniert nicht',
    text: 'Vielleicht ist ein Teil verloren gegangen. Öffnen Sie ihn aus der E-Mail selbst oder kopieren Sie ihn ganz. Es wurde nichts geändert.',
  },
  tooMany: {
    title: 'Zu viele Anfragen',
    text: 'Aus Ihrem Netz kamen in kurzer Zeit viele Anfragen. Bitte versuchen Sie es in einer Minute noch einmal.',
  },
  unavailable: {
    title: 'Im Moment nicht möglich',
    text: 'Bitte versuchen Sie es in einigen Minuten noch einmal. Es wurde nichts geändert.',
  },
  broken: {
    title: 'Etwas ist schiefgegangen',
    text: 'Das liegt an uns und wurde vermerkt. Bitte versuchen Sie es später noch einmal.',
  },
  unreadable: {
    title: 'Das ließ sich nicht lesen',
    text: 'Was ankam, ist kein Formular von uns. Bitte gehen Sie zurück und versuchen Sie es noch einmal. Es wurde nichts geändert.',
  },
  wrongMethod: {
    title: 'So geht es nicht',
    text: 'Diese Adresse nimmt solche Anfragen nicht an. Bitte öffnen Sie den Link aus der E-Mail.',
  },
  sentBy: name => `E-Mails von ${name}`,
  unsubscribe: {
    title: 'Abmelden',
    question: (email, sender) =>
      `Sollen an ${email} keine Newsletter und Angebote von ${sender} mehr kommen?`,
    stillComes: 'E-Mails, die Sie selbst anfordern, etwa Rechnungen, kommen weiterhin.',
    button: 'Abmelden',
    doneTitle: 'Sie sind abgemeldet',
    done: (email, sender) => `An ${email} kommen keine Newsletter und Angebote von ${sender} mehr.`,
    mistake: 'War es ein Versehen, oder möchten Sie auswählen, was Sie bekommen?',
    toPreferences: 'E-Mail-Einstellungen',
  },
  preferences: {
    title: 'E-Mail-Einstellungen',
    about: (email, sender) => `Was ${email} von ${sender} bekommt.`,
    lists: 'Ich möchte bekommen',
    noLists: 'Es gibt keine Themen zur Auswahl.',
    save: 'Speichern',
    saved: 'Ihre Auswahl wurde gespeichert.',
    allTitle: 'Alles',
    allText: sender => `Gar keine Newsletter und Angebote von ${sender}.`,
    unsubscribeAll: 'Von allem abmelden',
    unsubscribed: (email, sender) => `An ${email} kommen keine Newsletter und Angebote von ${sender}.`,
    subscribeAgain: 'Wieder anmelden',
    subscribedAgain: (email, sender) => `An ${email} kommen wieder E-Mails von ${sender}.`,
    stopped: (email, sender) =>
      `E-Mails an ${email} wurden angehalten: Sie waren nicht zustellbar, wurden als Spam gemeldet, oder ${sender} hat sie angehalten. ` +
      `Bitte schreiben Sie an ${sender}, wenn Sie wieder welche bekommen möchten.`,
  },
  view: {
    title: 'E-Mail',
    gone: {
      title: 'Diese E-Mail wird nicht mehr aufbewahrt',
      text: 'E-Mails lassen sich hier eine Zeit lang nach dem Versand lesen. Die in Ihrem Postfach ist dieselbe.',
    },
  },
  archive: {
    title: 'Bisherige E-Mails',
    empty: 'Hier wurde noch nichts veröffentlicht.',
    older: 'Ältere E-Mails',
    newest: 'Neueste E-Mails',
    feed: 'Diese Seite abonnieren (RSS)',
    gone: {
      title: 'Diese E-Mail ist nicht veröffentlicht',
      text: 'Vielleicht wurde sie zurückgezogen. Die übrigen E-Mails stehen im Archiv.',
    },
  },
  form: {
    email: 'E-Mail-Adresse',
    required: 'Pflichtfeld',
    optional: 'freiwillig',
    choose: 'Bitte wählen',
    button: 'Anmelden',
    leaveEmpty: 'Dieses Feld bitte leer lassen',
    sendAgain:
      'Bitte senden Sie das Formular noch einmal ab. Ein verborgenes Feld war ausgefüllt, vielleicht von Ihrem Browser; es ist jetzt wieder leer.',
    faultsTitle: 'Bitte prüfen Sie Ihre Angaben',
    missing: label => `${label} fehlt.`,
    badEmail: 'An diese E-Mail-Adresse lässt sich nicht schreiben.',
    badNumber: label => `${label} muss eine Zahl sein.`,
    badDate: label => `${label} muss ein Datum sein, etwa 2026-05-31.`,
    badChoice: label => `Bitte wählen Sie einen der Einträge für ${label}.`,
    tooLong: label => `${label} ist zu lang.`,
    thanks: { title: 'Vielen Dank', text: 'Wir haben Ihre Anmeldung erhalten.' },
    checkInbox: email => ({
      title: 'Noch ein Schritt',
      text: `Wir haben eine Nachricht an ${email} geschickt. Bitte öffnen Sie sie und bestätigen Sie dort. Kommt sie nicht an, sehen Sie im Spam nach.`,
    }),
    gone: { title: 'Dieses Formular ist geschlossen', text: 'Es nimmt keine Anmeldungen mehr an.' },
    toForm: 'Zum Formular',
  },
  optIn: {
    title: 'Anmeldung bestätigen',
    question: (email, sender) => `Soll ${email} E-Mails von ${sender} bekommen?`,
    button: 'Bestätigen',
    ignore: 'Wenn Sie das nicht wollten, schließen Sie diese Seite; dann geschieht nichts.',
    done: (email, sender) => ({
      title: 'Sie sind angemeldet',
      text: `Ab jetzt bekommt ${email} E-Mails von ${sender}. In jeder steht ein Link zum Abmelden.`,
    }),
    expired: {
      title: 'Dieser Link ist abgelaufen',
      text: 'Er galt nur einige Tage. Bitte melden Sie sich noch einmal an; dann kommt eine neue Nachricht.',
    },
    mailSubject: sender => `Bitte bestätigen Sie Ihre Anmeldung: ${sender}`,
    mailText: (email, sender) =>
      `Jemand, vermutlich Sie, möchte, dass ${email} E-Mails von ${sender} bekommt. Bitte bestätigen Sie, dass das stimmt.`,
    mailButton: 'Anmeldung bestätigen',
    mailIgnore: 'Wenn Sie es nicht waren, tun Sie nichts: Dann kommt auch nichts.',
    mailExpires: days => `Der Link gilt ${days} Tage.`,
  },
}
