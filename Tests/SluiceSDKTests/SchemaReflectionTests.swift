import Foundation
import SluiceSDK
import Testing

private class Part: EmbeddedObject {
    @Persisted var number: Int
}

private class Signal: AsymmetricObject {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var part: Part?
}

/// A property of every type, for what the schema says of them.
private class Whole: Object {
    @Persisted(primaryKey: true) var _id: UUID
    @Persisted var bool: Bool
    @Persisted(indexed: true) var int8: Int8?
    @Persisted var float: Float
    @Persisted var double: Double?
    @Persisted var string: String
    @Persisted var data: Data?
    @Persisted var date: Date
    @Persisted var decimal: Decimal128?
    @Persisted var objectId: ObjectId
    @Persisted var any: AnyRealmValue
    @Persisted var colour: Colour?
    @Persisted var point: Point
    @Persisted var celsius: Celsius
    @Persisted var link: Whole?
    @Persisted var part: Part?
    @Persisted var texts: List<String?>
    @Persisted var parts: List<Part>
    @Persisted var dates: MutableSet<Date>
    @Persisted var others: Map<String, Whole?>
    @Persisted(originProperty: "link") var backwards: LinkingObjects<Whole>
    override class func propertiesMapping() -> [String: String] { ["string": "text"] }
}

/// What a Realm and its objects say about classes and properties.
@Suite struct SchemaReflectionTests {
    private let schema = Whole().objectSchema

    private func expect(
        _ name: String, _ type: PropertyType, optional: Bool = false, of target: String? = nil, at place: SourceLocation = #_sourceLocation
    ) throws {
        let property = try #require(schema[name], sourceLocation: place)
        #expect(property.name == name && property.type == type && property.isOptional == optional, sourceLocation: place)
        #expect(property.objectClassName == target, sourceLocation: place)
        if target == nil { #expect(!property.isArray && !property.isSet && !property.isMap, sourceLocation: place) }
    }

    @Test func `every property has its type, and whether it may be nil`() throws {
        try expect("_id", .UUID)
        try expect("bool", .bool)
        try expect("int8", .int, optional: true)
        try expect("float", .float)
        try expect("double", .double, optional: true)
        try expect("string", .string)
        try expect("data", .data, optional: true)
        try expect("date", .date)
        try expect("decimal", .decimal128, optional: true)
        try expect("objectId", .objectId)
        try expect("any", .any)
        try expect("colour", .string, optional: true)
        try expect("celsius", .double)
        try expect("link", .object, optional: true, of: "Whole")
        try expect("part", .object, optional: true, of: "Part")
        try expect("backwards", .linkingObjects, of: "Whole")
        #expect(schema["point"]?.type == .object && schema["point"]?.objectClassName == "PointObject")
    }

    @Test func `collections are properties of their elements' type`() throws {
        let (texts, parts) = (try #require(schema["texts"]), try #require(schema["parts"]))
        #expect(texts.isArray && texts.type == .string && texts.isOptional && texts.objectClassName == nil)
        #expect(parts.isArray && parts.type == .object && parts.objectClassName == "Part")
        let (dates, others) = (try #require(schema["dates"]), try #require(schema["others"]))
        #expect(dates.isSet && dates.type == .date && !dates.isOptional && !dates.isArray)
        #expect(others.isMap && others.type == .object && others.objectClassName == "Whole" && !others.isSet)
    }

    @Test func `names in the file, indexes and the key are told`() throws {
        #expect(schema["string"]?.columnName == "text" && schema["bool"]?.columnName == "bool" && schema["text"] == nil)
        #expect(schema["int8"]?.isIndexed == true && schema["_id"]?.isIndexed == true && schema["bool"]?.isIndexed == false)
        #expect(schema.primaryKeyProperty == schema["_id"] && schema.className == "Whole" && schema.properties.count == 21)
        #expect(Part().objectSchema.primaryKeyProperty == nil)
    }

    @Test func `classes say what kind they are`() throws {
        #expect(schema.objectClass == Whole.self && !schema.isEmbedded && !schema.isAsymmetric)
        #expect(Part().objectSchema.isEmbedded && Part().objectSchema.objectClass == Part.self)
        #expect(Signal().objectSchema.isAsymmetric && !Signal().objectSchema.isEmbedded && Signal()["part"] == nil)
        let realm = try Realm(configuration: try TemporaryFolder().synced([Signal.self]))
        #expect(realm.schema.objectSchema.map(\.className) == ["Part", "Signal"] && realm.schema["Signal"]?.isAsymmetric == true)
        #expect(realm.schema["Nobody"] == nil)
    }

    @Test func `schemas of one class are equal, and describe themselves`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Whole.self]))
        #expect(realm.schema["Whole"] == schema && realm.schema["Part"] != schema && realm.schema == realm.schema)
        #expect(Set([schema, Whole().objectSchema]).count == 1 && schema["bool"] != schema["date"])
        let text = realm.schema.description
        #expect(text.contains("Whole {") && text.contains("texts {") && text.contains("array = true;") && text.contains("type = Part;"))
    }
}
