package import SluiceCore
package import SluiceWire

/// The replica's classes with the property numbers that the gateway allotted in `Welcome`, for decoding rows and encoding changes. Type
/// indices and the order of cells are the replica's. A property unknown to the gateway keeps its place under number 0, which no message
/// carries.
package struct ServerSchema: Sendable {
    package let codec: SchemaCodec
    package var schema: Schema { codec.schema }

    package init(local: Schema, server: Schema) {
        codec = SchemaCodec(local.numbered { type, index in server[type.name]?[type.properties[index].name]?.id ?? 0 })
    }
}

extension Schema {
    /// Returns the schema with the property numbers that `number` gives for each class and property index.
    func numbered(_ number: (ObjectType, Int) -> UInt32) -> Schema {
        Schema(
            types.map { type in
                var properties = type.properties
                for index in properties.indices { properties[index].id = number(type, index) }
                let key = type.primaryKey.map { type.properties[$0].name }
                return ObjectType(name: type.name, kind: type.kind, properties: properties, primaryKey: key)
            })
    }
}
