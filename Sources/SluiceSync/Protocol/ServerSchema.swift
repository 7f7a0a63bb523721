package import SluiceCore
package import SluiceWire

/// The file's own types with the numbers that the gateway gave their properties (Welcome): what rows and changes are read
/// and written with. Type indices and the order of cells are the file's. A property that the gateway does not have keeps
/// its place under the number 0, which no message carries.
package struct ServerSchema: Sendable {
    package let codec: SchemaCodec
    package var schema: Schema { codec.schema }
    /// The numbers by type, in the order of its properties.
    let numbers: [[UInt32]]

    package init(local: Schema, server: Schema) {
        codec = SchemaCodec(
            Schema(
                local.types.map { type in
                    let known = server[type.name]
                    let properties = type.properties.map { property in
                        var numbered = property
                        numbered.id = known?[property.name]?.id ?? 0
                        return numbered
                    }
                    let key = type.primaryKey.map { type.properties[$0].name }
                    return ObjectType(name: type.name, kind: type.kind, properties: properties, primaryKey: key)
                }))
        numbers = codec.schema.types.map { $0.properties.map(\.id) }
    }
}
