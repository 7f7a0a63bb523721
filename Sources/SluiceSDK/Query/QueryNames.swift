import SluiceCore
import SluiceQuery
import SluiceReplica

extension [ModelSchema] {
    /// The names that queries may use besides those in the file: properties as the classes have them, and inverse links.
    var queryAliases: QueryAliases {
        var aliases = QueryAliases()
        for schema in self {
            for property in schema.properties {
                if property.kind.isComputed {
                    guard let target = property.kind.target, let origin = property.origin else { continue }
                    let source = ModelSchema.of(target)
                    guard let slot = source.slot(of: origin) else { continue }
                    aliases.properties[schema.name, default: [:]][property.name] =
                        "@links.\(source.name).\(source.properties[slot].column)"
                } else if property.name != property.column {
                    aliases.properties[schema.name, default: [:]][property.name] = property.column
                }
            }
        }
        return aliases
    }
}

extension ReplicaQuery {
    /// The condition's text with the names in the file; a condition over links keeps the names that were written.
    var storedText: String {
        let isStored = (try? SluiceQuery.Query.parse(text).bind(to: bound.type, in: bound.schema)) != nil
        return isStored ? text : bound.predicate?.canonicalText ?? text
    }
}
