import SluiceCore
import Testing

/// What JSON says of schemas: plugins and recorded schemas depend on the very words.
@Suite struct SchemaWordsTests {
    @Test(
        arguments: [
            (.bool, "bool"), (.int, "int"), (.float, "float"), (.double, "double"), (.decimal, "decimal"), (.string, "string"),
            (.binary, "binary"), (.timestamp, "date"), (.objectId, "objectId"), (.uuid, "uuid"), (.mixed, "mixed"),
            (.link(to: "Airport"), "link:Airport"), (.embedded("Address"), "embedded:Address"),
            (.link(to: "embedded:A"), "link:embedded:A"), (.embedded("\u{301}"), "embedded:\u{301}"),
        ] as [(PropertyType, String)])
    func `a type has one word, and the word means it`(type: PropertyType, word: String) {
        #expect(type.word == word && PropertyType(word: word) == type)
    }

    @Test func `kinds and collections have one word each`() {
        #expect(ObjectKind.allCases.map(\.word) == ["top_level", "embedded", "asymmetric"])
        #expect(CollectionKind.allCases.map(\.word) == ["none", "list", "set", "dictionary"])
        for kind in ObjectKind.allCases { #expect(ObjectKind(word: kind.word) == kind) }
        for kind in CollectionKind.allCases { #expect(CollectionKind(word: kind.word) == kind) }
    }

    @Test(arguments: ["", "link", "link:", "embedded:", "object", "Int", "links:A"])
    func `other words mean nothing`(word: String) {
        #expect(PropertyType(word: word) == nil && ObjectKind(word: word) == nil && CollectionKind(word: word) == nil)
    }
}
