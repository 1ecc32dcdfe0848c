/** Texts of the setup checklist: French. */
import type { setup as texts } from './en'

export const setup: typeof texts = {
  setup: {
    title: 'Mise en route',
    intro: (done, all) => `${done} étapes sur ${all} sont faites. Chacune se coche d’elle-même.`,
    dismiss: 'Masquer',
    dismissed: 'La liste est masquée. Les réglages de l’espace de travail permettent de la réafficher.',
    show: 'Afficher la liste de mise en route',
    allDone: 'Toutes les étapes de la liste sont faites.',
    done: 'Fait',
    open: 'À faire',
    steps: {
      company: {
        title: 'Nom et adresse postale',
        why: 'Le courrier commercial doit dire qui l’envoie et où écrire ; le pied de page montre les deux.',
        go: 'Aux réglages',
      },
      sender: {
        title: 'Un domaine d’envoi',
        why: 'Les destinataires font confiance au courrier signé pour le domaine de son expéditeur. Publiez les enregistrements ; ils sont revérifiés d’eux-mêmes.',
        go: 'Aux domaines',
      },
      delivery: {
        title: 'Ce que voient les autres serveurs',
        why: 'Ils regardent le nom de ce serveur, son DNS inverse et son enregistrement SPF avant d’accepter du courrier ; et le port 25 doit être ouvert.',
        go: 'Aux vérifications',
      },
      mail: {
        title: 'Un premier e-mail',
        why: 'Créez une clé, mettez-la dans POSTROAD_KEY et exécutez ceci. L’étape est faite dès que l’e-mail est accepté.',
        go: 'Créer une clé',
      },
      contacts: {
        title: 'Premiers contacts',
        why: 'Les campagnes et automatisations s’adressent à des contacts : importez un fichier, ou ajoutez-en un à la main.',
        go: 'Aux contacts',
      },
      campaign: {
        title: 'Une première campagne',
        why: 'Une campagne envoie un texte à une liste ou à un segment, et dit qui l’a lu.',
        go: 'Aux campagnes',
      },
    },
    showMessage: 'Afficher l’e-mail',
    language: 'Langage',
    sample: 'Requête',
    checking: 'Les vérifications sont en cours…',
    notRight: 'Pas encore en ordre :',
  },
}
