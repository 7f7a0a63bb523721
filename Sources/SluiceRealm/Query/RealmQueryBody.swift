package import SluiceCore
package import SluiceQuery
import SluiceValues

/// The subscriptions of a client, as IDENT and QUERY carry them: one text for each class, which joins the class's subscriptions by OR.
package struct RealmQueryBody: Hashable, Sendable {
    /// The texts in the order of the body. A class occurs once.
    package var texts: [Text]

    package struct Text: Hashable, Sendable {
        package var type: String
        package var text: String

        package init(_ type: String, _ text: String) {
            self.type = type
            self.text = text
        }
    }

    package init(_ texts: [Text]) { self.texts = texts }

    /// Reads the JSON of a message.
    /// - Throws: `badSyntax` if the body is not a JSON object of texts, which no query error can answer.
    package static func parse(_ body: [UInt8]) throws(SluiceError) -> RealmQueryBody {
        let json: JSON
        do throws(SluiceError) { json = try JSON.parse(body) } catch {
            throw SluiceError(.badSyntax, "The queries of a client are no JSON: \(error.message)", cause: .error(error))
        }
        guard case .object(let members) = json else {
            throw SluiceError(.badSyntax, "The queries of a client are no JSON object by class.")
        }
        var texts: [Text] = []
        for member in members {
            guard case .string(let text) = member.value else {
                throw SluiceError(.badSyntax, "The query of class '\(member.key.excerpt)' is no text.")
            }
            texts.append(Text(member.key, text))
        }
        return RealmQueryBody(texts)
    }

    /// Checks all texts as subscriptions, and binds them.
    /// - Returns: A predicate for each text, in their order.
    /// - Throws: `queryTooLarge` for the whole set, `querySubscribedTypeUnknown` for a class that the app lacks, otherwise the errors of
    ///   `Subscription.check`. `queryErrorText` makes the answer for the client.
    package func predicates(in schema: Schema, fields: QueryableFields) throws(SluiceError) -> [Predicate] {
        try Subscription.checkSize(ofSet: texts.map(\.text))
        var predicates: [Predicate] = []
        for text in texts {
            guard let type = schema[text.type] else {
                let hint = Suggestion.question(for: text.type, in: schema.types.map(\.name))
                throw SluiceError(.querySubscribedTypeUnknown, "the app has no class '\(text.type.excerpt)'.\(hint)")
            }
            predicates.append(try Subscription.check(type: type, query: try text.query(), in: schema, fields: fields))
        }
        return predicates
    }

    /// Returns the text of a query error: one sentence that begins with "Invalid query:", by which SDKs recognise it.
    package static func queryErrorText(_ error: SluiceError) -> String {
        let sentence = QueryErrorParts(error)?.sentence ?? ClientError(error).message
        let opening = "Invalid query: "
        return sentence.hasPrefix(opening) ? sentence : opening + sentence
    }
}

extension RealmQueryBody.Text {
    /// The parsed text.
    ///
    /// A client leaves SORT, DISTINCT and LIMIT inside the parentheses of their subscription, where the grammar has none.
    /// - Throws: `querySort`, `queryDistinct` or `queryLimit` for these. `querySyntax` for any other text that is no query.
    package func query() throws(SluiceError) -> Query {
        do throws(SluiceError) { return try Query.parse(text) } catch {
            guard let suffix = QuerySuffixSearch.first(in: text) else { throw error }
            let table = "unsupported query for table \"\(type.excerpt)\""
            throw SluiceError(suffix.code, "Invalid query: \(table): \(suffix.word) is not allowed in a subscription")
        }
    }
}

/// The search for a suffix in a text that does not parse.
private enum QuerySuffixSearch {
    private static let suffixes: [(word: String, code: ErrorCode)] = [
        ("SORT", .querySort), ("DISTINCT", .queryDistinct), ("LIMIT", .queryLimit),
    ]

    /// Returns the first suffix's word before a parenthesis, outside of strings. O(bytes).
    static func first(in text: String) -> (word: String, code: ErrorCode)? {
        var quote: UInt8?
        var (isEscaped, isEnded) = (false, true)
        var word: [UInt8] = []
        for byte in text.utf8 {
            if let open = quote {
                if byte == open, !isEscaped { quote = nil }
                isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
            } else if isPartOfName(byte) {
                if isEnded { word = [] }
                isEnded = false
                word.append((UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte - 32 : byte)
            } else if byte == UInt8(ascii: " ") {
                isEnded = true
            } else {
                if byte == UInt8(ascii: "("), let suffix = suffixes.first(where: { word.elementsEqual($0.word.utf8) }) { return suffix }
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") { quote = byte }
                word = []
            }
        }
        return nil
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "-"), 0x80...:
            true
        default: false
        }
    }
}
