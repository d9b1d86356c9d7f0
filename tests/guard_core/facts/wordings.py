"""Sentences of users by language: rules, requests, and what only says how things are."""

SENTENCES = {
    "de": (
        (
            "Du darfst niemals direkt auf main pushen.",
            "Alle Änderungen müssen getestet werden.",
            "Ändere die öffentliche API nicht.",
            "Bitte keine neuen Abhängigkeiten einführen.",
            "Verwende ausschließlich Python 3.11.",
            "Kommentare sind immer auf Englisch zu schreiben, nie auf Deutsch.",
            "Committe nur nach erfolgreichem Testlauf.",
            "- Vermeide globale Variablen in den Modulen.",
        ),
        (
            "Bitte behebe den Fehler im Parser.",
            "Füge eine Funktion zum Export hinzu.",
            "Kannst du die Rechnungen migrieren?",
            "Zeig mir, warum der Test nicht läuft.",
            "Ich möchte eine Übersicht der Kunden haben.",
        ),
        (
            "Der Test läuft seit gestern.",
            "Es gibt nur einen Fehler.",
            "Ich habe das noch nie gesehen.",
            "Das ist immer noch kaputt.",
            "Die Datenbank ist langsam.",
        ),
    ),
    "fr": (
        (
            "Ne modifie jamais les fichiers générés.",
            "N'utilise pas de bibliothèque externe.",
            "Tu dois toujours lancer les tests avant de valider.",
            "Il faut que chaque fonction soit documentée.",
            "Merci de ne pas changer l'interface publique.",
            "Utilise uniquement la version 3 de l'API.",
            "Les secrets ne doivent pas être écrits dans les journaux.",
            "Évite les variables globales.",
        ),
        (
            "Corrige le test qui ne passe pas.",
            "Ajoute une page pour les factures.",
            "Peux-tu expliquer cette erreur ?",
            "Je voudrais une liste des clients.",
            "S'il te plaît, migre la base de données.",
        ),
        (
            "Le serveur est lent depuis hier.",
            "J'ai toujours la même erreur.",
            "Il y a seulement un test en échec.",
            "La page se charge maintenant.",
            "Merci beaucoup pour ton aide.",
        ),
    ),
    "es": (
        (
            "Nunca subas cambios directamente a main.",
            "No modifiques los archivos generados.",
            "Siempre debes ejecutar las pruebas antes de confirmar.",
            "Por favor, no cambies la interfaz pública.",
            "Usa solo la versión 3 de la API.",
            "Hay que documentar cada función.",
            "Está prohibido guardar contraseñas en el código.",
            "Evita las variables globales.",
        ),
        (
            "Arregla el test que no pasa.",
            "Añade una página para las facturas.",
            "¿Puedes explicar este error?",
            "Quiero una lista de los clientes.",
            "Migra la base de datos.",
        ),
        (
            "El servidor está lento desde ayer.",
            "No funciona en la rama principal.",
            "Hay al menos dos errores.",
            "No encuentra el archivo de configuración.",
            "Muchas gracias por la ayuda.",
        ),
    ),
    "pt": (
        (
            "Nunca envie alterações direto para a main.",
            "Não altere os arquivos gerados.",
            "Você deve sempre rodar os testes antes do commit.",
            "Use apenas a versão 3 da API.",
        ),
        ("Corrija o teste que falhou.", "Adicione uma página para as faturas.", "Quero uma lista dos clientes."),
        ("O servidor está lento desde ontem.", "Não funciona no ramo principal.", "Obrigado pela ajuda."),
    ),
    "it": (
        (
            "Non modificare i file generati.",
            "Devi eseguire i test prima di ogni commit.",
            "Non fare mai push su main.",
            "È vietato salvare le password nel codice.",
        ),
        ("Correggi il test che fallisce.", "Aggiungi una pagina per le fatture.", "Vorrei un elenco dei clienti."),
        ("Il server è lento da ieri.", "Non funziona sul ramo principale.", "Grazie mille per l'aiuto."),
    ),
    "nl": (
        (
            "Je mag de configuratie nooit aanpassen.",
            "Gebruik altijd UTC in de tabellen.",
            "Wijzig de bronbestanden niet.",
            "Voeg geen nieuwe afhankelijkheden toe.",
            "Alle functies moeten getest worden.",
        ),
        (
            "Kun je de facturen migreren?",
            "Voeg een pagina toe voor de klanten.",
            "Tel de getijhoogten van de haven en maak een tabel.",
        ),
        (
            "De test faalt sinds gisteren.",
            "Er is altijd iets met deze server.",
            "Ik heb dat nooit gezien.",
            "Het is nog steeds kapot.",
        ),
    ),
    "pl": (
        (
            "Nigdy nie zmieniaj plików źródłowych.",
            "Zawsze używaj czasu UTC w tabelach.",
            "Nie usuwaj istniejących testów.",
            "Każda funkcja musi mieć test.",
            "Używaj tylko biblioteki standardowej.",
        ),
        (
            "Policz poziomy pływów w porcie i zrób tabelę.",
            "Popraw błąd w parserze faktur.",
            "Czy możesz przenieść klientów?",
            "Dodaj eksport do pliku.",
        ),
        (
            "Serwer nie działa od wczoraj.",
            "Ten plik nie istnieje w katalogu.",
            "Baza jest wolna od rana.",
        ),
    ),
    "ru": (
        (
            "Никогда не изменяй исходные файлы.",
            "Обязательно используй время UTC.",
            "Не удаляйте существующие тесты.",
            "Каждая функция должна иметь тест.",
            "Нельзя добавлять новые зависимости.",
        ),
        (
            "Посчитай уровни прилива в порту и составь таблицу.",
            "Исправь ошибку в разборе счетов.",
            "Можешь объяснить эту ошибку?",
            "Добавьте выгрузку в файл.",
        ),
        (
            "Тест не работает со вчерашнего дня.",
            "Сервер работает только медленно.",
            "Файл лежит в другой папке.",
        ),
    ),
    "ar": (
        (
            "يجب استخدام توقيت UTC في الجداول.",
            "لا تعدل الملفات الأصلية أبدا.",
            "لا تحذف الاختبارات الموجودة.",
            "استخدم المكتبة القياسية فقط.",
        ),
        (
            "احسب مستويات المد في الميناء وأنشئ جدولا.",
            "أصلح الخطأ في قراءة الفواتير.",
            "هل يمكنك شرح هذا الخطأ؟",
        ),
        (
            "الاختبار يفشل منذ أمس.",
            "الخادم بطيء اليوم.",
        ),
    ),
}
