import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// Each code of the query language is what some text gets, with a place and an advice.
struct QueryErrorCodeTests {
    private static func bind(_ text: String) throws {
        _ = try Query.parse(text).bind(to: Samples.type, in: Samples.schema)
    }

    private static func check(_ text: String, indexed: String? = nil, kind: ObjectKind = .topLevel) throws {
        var fields = SubscriptionTests.fields
        fields.indexed = indexed
        let type = ObjectType(name: "Sample", kind: kind, properties: Samples.type.properties)
        _ = try Subscription.check(type: type, query: try Query.parse(text), in: Samples.schema, fields: fields)
    }

    private static let producers: [ErrorCode: @Sendable () throws -> Void] = [
        .querySyntax: { _ = try Query.parse("number ==") },
        .queryUnknownProperty: { try bind("nmber == 1") },
        .queryTypeMismatch: { try bind("flag == 'x'") },
        .queryArgument: { try bind("number == $0") },
        .queryShape: { try bind("place GEOWITHIN geoCircle([0, 0], -1.0)") },
        .queryNotQueryable: { try check("other == 1") },
        .queryUnsupported: { try check("'abc' CONTAINS name") },
        .queryIndexedFieldMissing: { try check("number == 1", indexed: "store") },
        .queryAsymmetric: { try check("number == 1", kind: .asymmetric) },
        .queryTooLarge: { try check("name LIKE '" + String(repeating: "*", count: Limits.patternBytes + 1) + "'") },
        .queryEmbedded: { try check("number == 1", kind: .embedded) },
    ]

    @Test(arguments: ErrorCode.allCases.filter { (300..<400).contains($0.rawValue) })
    func `every code of the query language is produced`(_ code: ErrorCode) throws {
        // The gateway's own: only it knows which types there are (SluiceGatewayTests, bad queries).
        if code == .querySubscribedTypeUnknown { return #expect(code.refusesSubscription) }
        let text = SubscriptionTests.refusals.first { $0.code == code }?.text
        let error = #expect(throws: SluiceError.self) {
            if let producer = QueryErrorCodeTests.producers[code] {
                try producer()
            } else {
                try QueryErrorCodeTests.check(text ?? "TRUEPREDICATE")
            }
        }
        #expect(error?.code == code, "\(String(describing: error))")
        #expect(error?.message.isEmpty == false)
        #expect(!code.fix.isEmpty && !code.meaning.isEmpty)
    }

    @Test
    func `a near name is suggested wherever a name is unknown`() {
        for (text, name) in [
            ("nmber == 1", "number"), ("friend.nme == 'x'", "name"), ("ANY tgs == 'x'", "tags"), ("scroes.@count > 1", "scores"),
        ] {
            let error = #expect(throws: SluiceError.self) { try QueryErrorCodeTests.bind(text) }
            #expect(error?.code == .queryUnknownProperty)
            #expect(error?.description.contains("Did you mean '\(name)'?") == true, "\(String(describing: error))")
        }
    }
}
