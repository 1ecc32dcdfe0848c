/** Texts of the setup checklist: German. */
import type { setup as texts } from './en'

export const setup: typeof texts = {
  setup: {
    title: 'Einrichten',
    intro: (done, all) => `${done} von ${all} Schritten sind erledigt. Jeder wird von selbst abgehakt.`,
    dismiss: 'Ausblenden',
    dismissed:
      'Die Liste ist ausgeblendet. In den Einstellungen des Arbeitsbereichs lässt sie sich wieder zeigen.',
    show: 'Einrichtungsliste zeigen',
    allDone: 'Alle Schritte der Liste sind erledigt.',
    done: 'Erledigt',
    open: 'Offen',
    steps: {
      company: {
        title: 'Name und Postanschrift',
        why: 'Werbung muss sagen, wer sie schickt und wohin man schreiben kann; die Fußzeile zeigt beides.',
        go: 'Zu den Einstellungen',
      },
      sender: {
        title: 'Eine Domain als Absender',
        why: 'Empfänger vertrauen Mail, die für die Domain ihres Absenders signiert ist. Veröffentlichen Sie die Einträge; geprüft werden sie von selbst wieder.',
        go: 'Zu den Domains',
      },
      delivery: {
        title: 'Was andere Mailserver sehen',
        why: 'Sie prüfen den Namen dieses Servers, sein Reverse-DNS und seinen SPF-Eintrag, bevor sie Mail annehmen; und Port 25 muss offen sein.',
        go: 'Zu den Prüfungen',
      },
      mail: {
        title: 'Eine erste Mail',
        why: 'Erstellen Sie einen Schlüssel, setzen Sie ihn in POSTROAD_KEY ein und führen Sie dies aus. Der Schritt ist erledigt, sobald die Mail angenommen ist.',
        go: 'Schlüssel erstellen',
      },
      contacts: {
        title: 'Erste Kontakte',
        why: 'Kampagnen und Automationen richten sich an Kontakte: Importieren Sie eine Datei, oder legen Sie einen von Hand an.',
        go: 'Zu den Kontakten',
      },
      campaign: {
        title: 'Eine erste Kampagne',
        why: 'Eine Kampagne schickt einen Text an eine Liste oder ein Segment und berichtet, wer ihn gelesen hat.',
        go: 'Zu den Kampagnen',
      },
    },
    showMessage: 'Mail zeigen',
    language: 'Sprache',
    sample: 'Anfrage',
    checking: 'Die Prüfungen laufen…',
    notRight: 'Noch nicht in Ordnung:',
  },
}
