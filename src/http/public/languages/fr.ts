/** Public pages in French. */
import type { PageTexts } from './page-texts.js'

export const fr: PageTexts = {
  notFound: {
    title: 'Il n’y a rien ici',
    text: 'Cette page n’existe pas. Une partie du lien s’est peut-être perdue ; ouvrez-le de nouveau depuis l’e-mail.',
  },
  badLink: {
    title: 'Ce lien ne fonctionne pas',
    text: 'Une partie s’est peut-être perdue en route. Ouvrez-le depuis l’e-mail lui-même, ou copiez-le en entier. Rien n’a été modifié.',
  },
  tooMany: {
    title: 'Trop de demandes',
    text: 'Beaucoup de demandes sont venues de votre réseau en peu de temps. Réessayez dans une minute.',
  },
  unavailable: {
    title: 'Impossible pour le moment',
    text: 'Réessayez dans quelques minutes. Rien n’a été modifié.',
  },
  broken: {
    title: 'Une erreur s’est produite',
    text: 'La faute est de notre côté et a été notée. Réessayez plus tard.',
  },
  unreadable: {
    title: 'Demande illisible',
    text: 'Ce qui a été envoyé n’est pas l’un de nos formulaires. Revenez en arrière et réessayez. Rien n’a été modifié.',
  },
  wrongMethod: {
    title: 'Pas de cette façon',
    text: 'Cette adresse n’accepte pas ce genre de demande. Ouvrez le lien depuis l’e-mail.',
  },
  sentBy: name => `E-mails de ${name}`,
  unsubscribe: {
    title: 'Se désabonner',
    question: (email, sender) =>
      `Faut-il ne plus envoyer à ${email} de lettres d’information ni d’offres de ${sender} ?`,
    stillComes: 'Les messages que vous demandez vous-même, comme les factures, continuent d’arriver.',
    button: 'Se désabonner',
    doneTitle: 'Vous êtes désabonné(e)',
    done: (email, sender) => `${email} ne reçoit plus de lettres d’information ni d’offres de ${sender}.`,
    mistake: 'Était-ce une erreur, ou voulez-vous choisir ce que vous recevez ?',
    toPreferences: 'Préférences d’e-mail',
  },
  preferences: {
    title: 'Préférences d’e-mail',
    about: (email, sender) => `Ce que ${email} reçoit de ${sender}.`,
    lists: 'Je veux recevoir',
    noLists: 'Il n’y a pas de sujets à choisir.',
    save: 'Enregistrer',
    saved: 'Votre choix a été enregistré.',
    allTitle: 'Tout',
    allText: sender => `Plus aucune lettre d’information ni offre de ${sender}.`,
    unsubscribeAll: 'Se désabonner de tout',
    unsubscribed: (email, sender) => `${email} ne reçoit ni lettres d’information ni offres de ${sender}.`,
    subscribeAgain: 'Se réabonner',
    subscribedAgain: (email, sender) => `${email} reçoit de nouveau des e-mails de ${sender}.`,
    stopped: (email, sender) =>
      `Les e-mails à ${email} ont été arrêtés : ils n’ont pas pu être remis, ont été signalés comme indésirables, ou ${sender} les a arrêtés. ` +
      `Écrivez à ${sender} si vous voulez en recevoir de nouveau.`,
  },
  view: {
    title: 'E-mail',
    gone: {
      title: 'Cet e-mail n’est plus conservé',
      text: 'Les e-mails se lisent ici quelque temps après leur envoi. Celui de votre boîte est le même.',
    },
  },
  archive: {
    title: 'E-mails précédents',
    empty: 'Rien n’a encore été publié ici.',
    older: 'E-mails plus anciens',
    newest: 'E-mails les plus récents',
    feed: 'S’abonner à cette page (RSS)',
    gone: {
      title: 'Cet e-mail n’est pas publié',
      text: 'Il a peut-être été retiré. Les autres e-mails figurent dans les archives.',
    },
  },
  form: {
    email: 'Adresse e-mail',
    required: 'obligatoire',
    optional: 'facultatif',
    choose: 'Choisissez',
    button: 'S’abonner',
    leaveEmpty: 'Laissez ce champ vide',
    sendAgain:
      'Veuillez envoyer le formulaire encore une fois. Un champ caché était rempli, peut-être par votre navigateur ; il est de nouveau vide.',
    faultsTitle: 'Vérifiez ce que vous avez rempli',
    missing: label => `${label} : ce champ est obligatoire.`,
    badEmail: 'On ne peut pas écrire à cette adresse e-mail.',
    badNumber: label => `${label} : il faut un nombre.`,
    badDate: label => `${label} : il faut une date, comme 2026-05-31.`,
    badChoice: label => `${label} : choisissez l’une des possibilités.`,
    tooLong: label => `${label} : c’est trop long.`,
    thanks: { title: 'Merci', text: 'Nous avons reçu votre inscription.' },
    checkInbox: email => ({
      title: 'Encore une étape',
      text: `Nous avons envoyé un message à ${email}. Ouvrez-le et confirmez-y. S’il n’arrive pas, regardez parmi les indésirables.`,
    }),
    gone: { title: 'Ce formulaire est fermé', text: 'Il n’accepte plus d’inscriptions.' },
    toForm: 'Vers le formulaire',
  },
  optIn: {
    title: 'Confirmez votre inscription',
    question: (email, sender) => `${email} doit-il recevoir des e-mails de ${sender} ?`,
    button: 'Confirmer',
    ignore: 'Si vous ne l’avez pas demandé, fermez cette page ; rien ne se passera.',
    done: (email, sender) => ({
      title: 'Vous êtes abonné(e)',
      text: `Désormais ${email} reçoit des e-mails de ${sender}. Chacun a un lien pour se désabonner.`,
    }),
    expired: {
      title: 'Ce lien a expiré',
      text: 'Il n’était valable que quelques jours. Inscrivez-vous de nouveau ; un nouveau message viendra.',
    },
    mailSubject: sender => `Confirmez votre inscription : ${sender}`,
    mailText: (email, sender) =>
      `Quelqu’un, sans doute vous, veut que ${email} reçoive des e-mails de ${sender}. Confirmez que c’est bien cela.`,
    mailButton: 'Confirmer l’inscription',
    mailIgnore: 'Si ce n’était pas vous, ne faites rien : rien ne viendra.',
    mailExpires: days => `Le lien est valable ${days} jours.`,
  },
}
