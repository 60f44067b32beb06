"""Train the static vectors that ship with Prunus: vocabulary, teachers' vectors, fitting, packing."""
